"""Options that several commands share, and checks of their values."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import rich_click as click

from producer.agents import OTHER_SPELLINGS
from producer.errors import UsageError
from producer.training_name import check_training_name
from schemas.advice import did_you_mean

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]

FOLDER = click.Path(path_type=Path)
FOLDER.name = "folder"
FILE = click.Path(path_type=Path)
FILE.name = "file"
COUNT = click.IntRange(min=1)
SEED = click.IntRange(min=0)
SPLIT = click.Choice(["train", "dev", "test"])
DEVICE = "auto|cpu|cuda|cuda:N"
DTYPE = click.Choice(["auto", "float32", "bfloat16"])


class FieldChoice(click.Choice[str]):
    """A choice that lists its values in the field's spelling rather than the flag's."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:  # noqa: ARG002  # click's signature
        """The error message, with all choices."""
        return f"{value!r} is not one of {', '.join(map(repr, self.choices))}."


class EnvironmentChoice(FieldChoice):
    """A choice among environments, each in any of its spellings."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Convert to the environment's name."""
        name = OTHER_SPELLINGS.get(value, value)
        return super().convert(name if name in self.choices else value, param, ctx)


def examples(*lines: str) -> str:
    """Format examples as the epilog of a command's help."""
    return "\n\n".join(["Examples:", *lines])


def option(
    names: str,
    text: str,
    kind: click.ParamType[Any] = click.STRING,
    *,
    default: Any = None,
    shown: str | None = None,
    metavar: str | None = None,
    panel: str = "Options",
    **more: Any,
) -> Decorator:
    """An option whose help shows its type as metavar and ends with its default, or with `shown`.

    `names` holds its flags separated by spaces, and the parameter's name if that differs.
    """
    if shown is None and default is not None:
        shown = f"{default:g}" if isinstance(default, float) else str(default)
    text = f"{text} [default: {shown}]".lstrip() if shown else text
    if metavar is None and isinstance(kind, click.Choice):
        metavar = "|".join(map(str, kind.choices))
    metavar = metavar or kind.name.upper().removesuffix(" RANGE")
    if not more.get("required"):  # click takes a default of None for a value
        more["default"] = default
    return click.option(*names.split(), help=text, type=kind, metavar=metavar, panel=panel, **more)


def switch(names: str, text: str, panel: str = "Options") -> Decorator:
    """A boolean option, off by default."""
    return click.option(*names.split(), is_flag=True, help=text, panel=panel)


with_json = switch("--json as_json", "Print the result as JSON.", "Output")
with_summary_as_json = switch("--json as_json", "Print the summary as JSON, last.", "Output")
with_takeover = switch(
    "--takeover",
    "Continue even if another process seems to be training it.",
    "Checkpoints and resume",
)
with_skip_invalid = switch(
    "--skip-invalid",
    "Skip and report invalid questions: without a database, or with a gold that fails.",
)
with_training_name = option("--training-name", "The training.", metavar="NAME", required=True)
with_output_folder = option(
    "--output", "Folder to write; must be new or empty.", FOLDER, required=True
)


def with_options(*options: Decorator) -> Decorator:
    """Add several options, in the order of the help."""

    def add(command: Command) -> Command:
        for add_option in reversed(options):
            command = add_option(command)
        return command

    return add


def chosen_names(given: str, known: Sequence[str], *, flag: str, noun: str) -> tuple[str, ...]:
    """Split a comma-separated list of names, dropping repeats.

    Raises UsageError if it is empty or a name is unknown.
    """
    chosen = tuple(dict.fromkeys(name.strip() for name in given.split(",") if name.strip()))
    for name in chosen:
        if name not in known:
            message = (
                f"{flag}: unknown {noun} {name!r}.{did_you_mean(name, known)} The {noun}s are"
                f" {', '.join(known)}"
            )
            raise UsageError(message)
    if not chosen:
        message = f"{flag}: name at least one {noun}"
        raise UsageError(message)
    return chosen


def given_training_name(text: str, flag: str = "--training-name") -> str:
    """Normalise a training name. Raises UsageError if it is invalid."""
    try:
        return check_training_name(text)
    except ValueError as error:
        message = f"{flag}: {error}"
        raise UsageError(message) from None


def check_new_output(output: Path) -> None:
    """Check that --output is a new .json file or a new or empty folder, and writable.

    Raises UsageError otherwise, and CuaTrainError if the disk is full.
    """
    from producer.training.preflight import check_writable

    is_file = output.suffix == ".json"
    check_writable(output.parent if is_file else output, "--output")
    if is_file and output.exists():
        message = f"--output: {output} exists; choose another file"
        raise UsageError(message)
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        message = f"--output: {output} exists and is not empty; choose another folder"
        raise UsageError(message)

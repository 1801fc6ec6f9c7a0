"""What several commands have in common: options, checks of what was given, examples of the help."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import rich_click as click

from producer.errors import UsageError, did_you_mean
from producer.training_name import check_training_name

Command = Callable[..., Any]


def examples(*lines: str) -> str:
    """The epilog of a command's help."""
    return "\n\n".join(["Examples:", *lines])


with_json = click.option("--json", "as_json", is_flag=True, panel="Output", help="Print JSON.")
with_summary_as_json = click.option(
    "--json", "as_json", is_flag=True, panel="Output", help="Print the summary as JSON, last."
)
with_takeover = click.option(
    "--takeover",
    is_flag=True,
    panel="Checkpoints and resume",
    help="Continue although another process seems to be training it.",
)


def with_options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Add several options, in this order of the help."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def chosen_names(given: str, known: Sequence[str], *, option: str, noun: str) -> tuple[str, ...]:
    """The names of a list separated by commas, each once. UsageError for none or an unknown one."""
    chosen = tuple(dict.fromkeys(name.strip() for name in given.split(",") if name.strip()))
    for name in chosen:
        if name not in known:
            message = (
                f"{option}: {name!r} is no {noun}.{did_you_mean(name, known)} The {noun}s are"
                f" {', '.join(known)}"
            )
            raise UsageError(message)
    if not chosen:
        message = f"{option}: no {noun} is given; name at least one"
        raise UsageError(message)
    return chosen


def given_training_name(text: str, option: str = "--training-name") -> str:
    """The name in its normal form. UsageError when it is none."""
    try:
        return check_training_name(text)
    except ValueError as error:
        message = f"{option}: {error}"
        raise UsageError(message) from None


def check_new_folder(output: Path) -> None:
    """UsageError when --output holds something or cannot be made; CuaTrainError on a full disk."""
    from producer.training.writable import check_writable

    check_writable(output, "--output")
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        message = f"--output: {output} exists and is not empty; choose another folder"
        raise UsageError(message)

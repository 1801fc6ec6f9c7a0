"""`cua-train`: the command line of everything that emits.

Commands are imported when they are called, which keeps --help quick. Each command, and `cua-train`
itself, takes --verbose, --quiet and --log-format.
"""

import logging
import os
import re
import sys
from importlib import import_module
from typing import Any, NoReturn

import click
from click.exceptions import NoSuchCommand, NoSuchOption
from rich_click import RichGroup, RichOption, group

from producer.errors import CuaTrainError, UsageError
from producer.log_lines import configure_logging
from schemas.distribution import DISTRIBUTION
from schemas.path_errors import full_disk, path_problem
from schemas.standard_streams import (
    exit_as_asked,
    flush_or_discard,
    flush_output,
    name_stdout_in_errors,
    open_missing_streams,
)

logger = logging.getLogger(__name__)

COMMANDS: dict[str, str] = {
    "run": "producer.commands.run",
    "evaluate": "producer.commands.evaluate",
    "compare": "producer.commands.compare",
    "tasks": "producer.commands.tasks",
    "data": "producer.commands.data",
    "models": "producer.commands.models",
    "checkpoints": "producer.commands.checkpoints",
    "trainings": "producer.commands.trainings",
    "devices": "producer.commands.devices",
    "serve": "producer.commands.serve",
    "env": "producer.commands.serve:env",
    "worker": "producer.commands.worker",
    "redo": "producer.commands.redo",
    "rescore": "producer.commands.redo:rescore_training",
    "sql": "producer.commands.sql",
    "convert": "producer.commands.convert",
    "ship": "producer.commands.worker:ship",
    "doctor": "producer.commands.doctor",
}
"""Command -> the module that has it as `command`, or under the name behind the colon."""
EPILOG = "\n\n".join(
    [
        "Examples:",
        "$ cua-train run                         # train the demo policy here",
        "$ cua-train run --training-name first   # train, or continue, `first`",
        "$ cua-train evaluate --training-name first",
        "",
        "Exit codes: 0 ok, 1 failure, 2 usage, 3 not found, 4 mismatch, 5 unreachable,",
        "6 timeout, 130 interrupted.",
    ]
)
CALLED = f"{__name__}.called"
"""Key in the context's `meta`: the context of the innermost command."""


OTHER_NAMES = {"config-path": "config"}
"""What a recipe calls a flag of every command -> its name here; `--help` shows that one alone."""


def with_dashes(word: str) -> str:
    """An option or a choice in one spelling, with dashes."""
    dashed = word.replace("_", "-")
    return OTHER_NAMES.get(dashed, dashed)


def add_log_options(command: click.Command) -> click.Command:
    """Add --verbose, --quiet and --log-format, also to every subcommand. Idempotent."""
    if isinstance(command, click.Group):
        for subcommand in command.commands.values():
            add_log_options(subcommand)
    present = {parameter.name for parameter in command.params}
    command.params += [option for option in _log_options() if option.name not in present]
    return command


def _log_options() -> list[click.Option]:
    common: dict[str, Any] = {
        "expose_value": False,
        "is_eager": True,  # an error in another option is logged in the chosen format
        "callback": _configure_logging,
        "panel": "Output",
    }
    return [
        RichOption(
            ["-v", "--verbose"],
            is_flag=True,
            help="Log details, and messages of other libraries.",
            **common,
        ),
        RichOption(["-q", "--quiet"], is_flag=True, help="Log only warnings and errors.", **common),
        RichOption(
            ["--log-format"],
            type=click.Choice(["text", "json"]),
            metavar="text|json",
            help="Format of log lines; json: one object per line. [default: text]",
            **common,
        ),
    ]


def _configure_logging(context: click.Context, parameter: click.Parameter, value: object) -> None:
    context.meta[CALLED] = context
    # A command and its parents share meta: an option given to any of them applies.
    if value:
        context.meta[f"{__name__}.{parameter.name}"] = value
    given = {name: context.meta.get(f"{__name__}.{name}") for name in ("verbose", "quiet")}
    if all(given.values()):
        message = "--verbose and --quiet exclude each other"
        raise click.UsageError(message, context)
    level = logging.INFO
    if given["verbose"]:
        level = logging.DEBUG
    elif given["quiet"]:
        level = logging.WARNING
    configure_logging(level, context.meta.get(f"{__name__}.log_format", "text"))


def flags_of(context: click.Context) -> set[str]:
    """The flags of a command and of the groups it belongs to."""
    of_groups = set() if context.parent is None else flags_of(context.parent)
    return of_groups.union(
        *({*param.opts, *param.secondary_opts} for param in context.command.params)
    )


class LazyGroup(RichGroup):
    """A group whose commands are imported on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """In the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # click's signature
        """The command of this name; None when there is none."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command = getattr(import_module(module), name or "command")
        assert isinstance(command, click.Command)  # noqa: S101  # of our own module
        command.name = cmd_name  # for the list of commands
        return add_log_options(command)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click; refuses words that are not UTF-8, because no event can hold them."""
        for word in args:
            if any("\ud800" <= character <= "\udfff" for character in word):
                message = f"{word!r} is not UTF-8 text; write it in UTF-8"
                raise click.UsageError(message, ctx)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """As click; an error suggests only flags of the command that failed."""
        try:
            return super().invoke(ctx)
        except CuaTrainError as error:
            error.for_command(flags_of(ctx.meta.get(CALLED, ctx)))
            raise

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click; an unknown command's error suggests lazily imported ones too."""
        try:
            return super().resolve_command(ctx, args)
        except NoSuchCommand as error:
            raise NoSuchCommand(error.command_name, possibilities=COMMANDS, ctx=ctx) from None


@group(
    cls=LazyGroup,
    epilog=EPILOG,
    context_settings={
        "help_option_names": ["-h", "--help"],
        # `--model_name` is `--model-name`, in every command.
        "token_normalize_func": with_dashes,
        "rich_help_config": {
            "theme": "default-slim",
            "max_width": 110,
            # A pair of flags too long for its column breaks between them.
            "delimiter_slash": " / ",
            # Ranges such as x>=1 are shown only in errors.
            "options_table_help_sections": ["help", "default"],
            "options_panel_title": "Help",
        },
    },
)
@click.version_option(None, "-V", "--version", package_name=DISTRIBUTION)
def cli() -> None:
    """Train agents that operate devices by looking at screenshots and taking actions.

    Every event of a run goes to the log.
    """


add_log_options(cli)


def main() -> None:
    """The entry point: runs the command line; errors become a message and an exit code."""
    open_missing_streams()
    name_stdout_in_errors()
    configure_logging()
    # Read when torch is imported. Otherwise waiting threads spin and keep busy cores from others.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        result = cli.main(standalone_mode=False)
        flush_output()
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        logger.info("interrupted")
        sys.exit(130)
    except click.ClickException as error:
        _fail(usage_message(error), error.exit_code)
    except CuaTrainError as error:
        _fail(str(error), error.exit_code)
    except TimeoutError as error:
        # No acknowledgement: the disk hangs, or another process holds the lock of the local log.
        _fail(str(error), 6)
    except SystemExit as error:
        exit_as_asked(error)
    except Exception as error:
        if os.environ.get("CUA_TRACEBACK"):
            raise
        if message := path_problem(error):
            _fail(message, UsageError.exit_code)
        _fail(_unexpected(error), 1)
    sys.exit(result if isinstance(result, int) else 0)


def usage_message(error: click.ClickException) -> str:
    """Click's message in our style, with the help to read."""
    text = _other_name(error) or error.format_message().strip().removesuffix(".")
    text = re.sub(r"\(Did you mean (?:one of: )?(.+)\?\)$", r"Did you mean \1?", text)
    text = text.replace("a valid integer range", "a valid integer")
    text = text[:1].lower() + text[1:]
    context = getattr(error, "ctx", None)
    if context is None:
        return text
    return f"{text}{'' if text.endswith('?') else '.'} See `{context.command_path} --help`"


def _other_name(error: click.ClickException) -> str | None:
    """The message for an option under another trainer's name (`--lr`, `lr=1`), or None."""
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return None
    from producer.field_errors import OTHER_NAMES, did_you_mean_field

    known = [str(param.name) for param in error.ctx.command.params]
    if setting := re.match(r"Got unexpected extra argument \((\w+)=", error.message):
        name = setting.group(1)
        hint = did_you_mean_field(name, known)
        return f"no such setting {name!r}{'.' if hint else ''}{hint}"
    if isinstance(error, NoSuchOption):
        field = OTHER_NAMES.get(error.option_name.lstrip("-").replace("-", "_"))
        if field in known:
            flag = f"--{with_dashes(field)}"
            return f"no such option {error.option_name!r}. Did you mean {flag!r}?"
    return None


def _fail(message: str, exit_code: int) -> NoReturn:
    logger.error("%s", message)
    flush_or_discard()
    sys.exit(exit_code)


def _unexpected(error: Exception) -> str:
    if message := full_disk(error):
        return message
    return (
        f"internal error: {type(error).__name__}: {error}; please report it. CUA_TRACEBACK=1 shows"
        " the traceback"
    )

"""`cua-train`: the command line of everything that emits.

Commands are imported when they are called, so that --help stays quick.
"""

import logging
import os
import sys
from importlib import import_module
from typing import NoReturn

import click
from rich_click import RichGroup, group

from producer.commands.log_options import add_log_options
from producer.errors import OUT_OF_SPACE, CuaTrainError
from producer.log_lines import configure_logging

logger = logging.getLogger(__name__)

COMMANDS: dict[str, str] = {
    "run": "producer.commands.run",
    "evaluate": "producer.commands.evaluate",
    "tasks": "producer.commands.tasks",
}
"""Command -> the module that has it as `command`."""
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


class LazyGroup(RichGroup):
    """A group whose commands are imported on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """In the order a user meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # click's signature
        """The command of this name; None when there is none."""
        if cmd_name not in COMMANDS:
            return None
        command = import_module(COMMANDS[cmd_name]).command
        assert isinstance(command, click.Command)  # noqa: S101  # a module of ours without one is a bug
        command.name = cmd_name  # what the list of commands shows
        return add_log_options(command)


@group(
    cls=LazyGroup,
    epilog=EPILOG,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "rich_help_config": {"theme": "default-slim", "max_width": 110},
    },
)
@click.version_option(package_name="cua-train")
def cli() -> None:
    """Train agents that operate devices by looking at screenshots and taking actions.

    Every event of a run goes to the log.
    """


add_log_options(cli)


def main() -> None:
    """The entry point: runs the command line and turns errors into a message and an exit code."""
    configure_logging()
    try:
        result = cli.main(standalone_mode=False)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        _fail("interrupted", 130)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f". See {context.command_path} --help" if context else ""
        _fail(error.format_message().removesuffix(".") + hint, error.exit_code)
    except CuaTrainError as error:
        _fail(str(error), error.exit_code)
    except BrokenPipeError:
        # The reader of our output (head, less) went away: not an error.
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:
        if os.environ.get("CUA_TRACEBACK"):
            raise
        _fail(_unexpected(error), 1)
    sys.exit(result if isinstance(result, int) else 0)


def _fail(message: str, exit_code: int) -> NoReturn:
    logger.error("%s", message)
    sys.exit(exit_code)


def _unexpected(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno in OUT_OF_SPACE:
        where = f" ({error.filename})" if error.filename else ""
        return f"the disk is full{where}; free some space, then run the same command again"
    return (
        f"internal error: {type(error).__name__}: {error}; please report it. CUA_TRACEBACK=1 shows"
        " the traceback"
    )

"""`cua-train`: the command line of everything that emits.

Commands are loaded when they are called, so that --help stays quick.
"""

import os
import sys
from importlib import import_module

import click

from producer.errors import CuaTrainError

COMMANDS: dict[str, str] = {
    "run": "producer.commands.run",
    "evaluate": "producer.commands.evaluate",
    "tasks": "producer.commands.tasks",
}
"""Command -> the module that has it as `command`."""


class LazyGroup(click.Group):
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
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="cua-train")
def cli() -> None:
    """Train policies that operate devices by screenshots and actions.

    Every fact of a run goes to the log.
    """


def main() -> None:
    """The entry point: runs the command line and turns errors into a message and an exit code."""
    try:
        result = cli.main(standalone_mode=False)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except CuaTrainError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output (head, less) went away: not an error of ours.
        sys.stderr.close()
        sys.exit(0)
    except (
        Exception
    ) as error:  # the process's boundary: a user gets a sentence, whoever mends it gets the place
        if os.environ.get("CUA_TRACEBACK"):
            raise
        click.echo(
            f"error: unexpected {type(error).__name__}: {error}. This is a fault of ours;"
            " CUA_TRACEBACK=1 shows where",
            err=True,
        )
        sys.exit(1)
    sys.exit(result if isinstance(result, int) else 0)

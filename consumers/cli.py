"""`cua-project`: the command line of everything that reads the log.

Commands are imported when they are called, and a command imports what it needs when it runs, so
that --help stays quick.
"""

import logging
import os
import re
import sys
from importlib import import_module
from typing import Any, NoReturn

import rich_click as click
from click.exceptions import NoSuchCommand

from consumers.database.forbidden import forbidden
from consumers.database.lost_session import lost_session
from consumers.database.silence import WATCH
from consumers.diagnostics import configure_logging
from consumers.embedded_postgres.libpq_variables import forget_libpq_variables
from consumers.errors import CuaProjectError, UnreachableError, UsageError
from schemas.distribution import DISTRIBUTION
from schemas.installation import names_database
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
    "up": "consumers.commands.up",
    "status": "consumers.commands.status",
    "show": "consumers.commands.show",
    "report": "consumers.commands.report",
    "tail": "consumers.commands.tail",
    "monitor": "consumers.commands.monitor",
    "database": "consumers.commands.database",
    "schema": "consumers.commands.schema",
    "psql": "consumers.commands.psql",
    "run": "consumers.commands.run",
    "ship": "consumers.commands.ship",
    "parked": "consumers.commands.parked",
    "rebuild": "consumers.commands.rebuild",
    "verify": "consumers.commands.verify",
    "migrate": "consumers.commands.migrate",
    "archive": "consumers.commands.archive",
    "export": "consumers.commands.export",
    "track": "consumers.commands.track",
    "tasks": "consumers.commands.tasks",
    "gc": "consumers.commands.gc",
    "doctor": "consumers.commands.doctor",
}
"""Command -> the module that has it as `command`."""

SILENCE_LIMIT_S = 30.0
"""How long a command waits for a database that takes connections and answers nothing."""
SILENCE_LIMITS_S: dict[str, float | None] = {
    "run": None,
    "up": None,
    "verify": None,
    "rebuild": None,
    "migrate": 600.0,
    "export": 120.0,
    "archive": 120.0,
    "track": None,
}
"""The same of commands that would lose much, or that wait out every outage (None)."""

CALLED = f"{__name__}.called"
"""The context of the innermost command that was called; all of one call share it."""

HELP_LAYOUT = {
    "theme": "default-slim",
    "max_width": 110,
    "text_paragraph_linebreaks": "\n\n",
    "padding_helptext_first_line": (0, 0, 1, 0),
    "options_table_help_sections": ["help", "default"],
}
"""As `cua-train --help`, with blank lines between paragraphs. A range such as 0<=x<=65535 is named
only when it is broken."""


class ProjectGroup(click.RichGroup):
    """Imports its commands on first use and gives each the logging options."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Every command, those used most first."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # click's signature
        """The command of this name; None if it does not exist."""
        if cmd_name not in COMMANDS:
            return None
        command = import_module(COMMANDS[cmd_name]).command
        assert isinstance(command, click.Command)  # noqa: S101  # a module of ours without one is a bug
        command.name = cmd_name
        _add_logging_options(command)
        WATCH.start(SILENCE_LIMITS_S.get(cmd_name, SILENCE_LIMIT_S))
        return command

    def invoke(self, ctx: click.Context) -> object:
        """As click; an error advises nothing that the command which fails cannot do."""
        try:
            return super().invoke(ctx)
        except CuaProjectError as error:
            error.for_command(flags_of(ctx.meta.get(CALLED, ctx)))
            raise

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click, but an unknown command's error suggests the lazily imported ones too."""
        try:
            return super().resolve_command(ctx, args)
        except NoSuchCommand as error:
            raise NoSuchCommand(error.command_name, possibilities=COMMANDS, ctx=ctx) from None


def flags_of(context: click.Context) -> set[str]:
    """The flags of a command, and of the groups that it is in."""
    of_groups = set() if context.parent is None else flags_of(context.parent)
    return of_groups.union(
        *({*param.opts, *param.secondary_opts} for param in context.command.params)
    )


def _set_logging(ctx: click.Context, option: click.Parameter, value: Any) -> None:  # noqa: ANN401  # click's signature
    ctx.meta[CALLED] = ctx
    if not value or ctx.resilient_parsing:
        return
    # One dict for the group and the command: `-v tail` and `tail -v` are the same.
    chosen: dict[str, Any] = ctx.meta.setdefault(f"{__name__}.logging", {})
    chosen[str(option.name)] = value
    if chosen.get("verbose") and chosen.get("quiet"):
        message = "--verbose and --quiet exclude each other"
        raise click.UsageError(message, ctx)
    configure_logging(**chosen)


def _logging_options() -> list[click.Option]:
    shared: dict[str, Any] = {
        "callback": _set_logging,
        "expose_value": False,
        "is_eager": True,
    }
    return [
        click.Option(
            ["-v", "--verbose"], is_flag=True, help="Log details, and other libraries.", **shared
        ),
        click.Option(
            ["-q", "--quiet"], is_flag=True, help="Log warnings and errors only.", **shared
        ),
        click.Option(
            ["--log-format"],
            type=click.Choice(["text", "json"]),
            metavar="text|json",
            help="Format of log lines; json is one object per line. [default: text]",
            **shared,
        ),
    ]


def _add_logging_options(command: click.Command) -> None:
    """Accept the logging options after the command's name as well. Idempotent.

    Not where every word is another program's: psql has a -v and a -q of its own.
    """
    from consumers.commands.psql import PassingOn

    if isinstance(command, PassingOn):
        return
    if not any(parameter.name == "log_format" for parameter in command.params):
        command.params += _logging_options()
    if isinstance(command, click.Group):
        for child in command.commands.values():
            _add_logging_options(child)


@click.group(
    cls=ProjectGroup,
    params=_logging_options(),
    context_settings={
        "help_option_names": ["-h", "--help"],
        "rich_help_config": HELP_LAYOUT,
    },
)
@click.version_option(None, "-V", "--version", package_name=DISTRIBUTION)
@click.command_panel(
    "Look at trainings",
    commands=[*("up", "status", "show", "report", "tail", "monitor", "database", "psql", "schema")],
)
@click.command_panel(
    "Maintain the tables",
    commands=["run", "ship", "parked", "rebuild", "verify", "migrate", "gc", "doctor"],
)
@click.command_panel("Take the data elsewhere", commands=["archive", "export", "tasks", "track"])
def cli() -> None:
    """Read the log of trainings: into PostgreSQL tables, a browser, or your terminal.

    The log is the local one under CUA_HOME, or Kafka where KAFKA_BOOTSTRAP_SERVERS is set. The
    tables are in an embedded PostgreSQL, or in the one that DATABASE_URL or POSTGRES_* names.

    Examples:
        cua-project up                       # database, tables and monitor
        cua-project status                   # trainings and lag of the tables
        cua-project tail --training demo -f  # follow one training's events
        cua-project psql                     # query the tables
    """


def main() -> None:
    """The entry point: runs the command line; errors become a message and an exit code."""
    open_missing_streams()
    name_stdout_in_errors()
    configure_logging()
    if not names_database(os.environ):
        forget_libpq_variables(os.environ)
    try:
        result = cli.main(standalone_mode=False)
        flush_output()
    except (click.Abort, KeyboardInterrupt):
        logger.info("interrupted")
        sys.exit(130)
    except click.ClickException as error:
        _fail(usage_message(error), error.exit_code)
    except CuaProjectError as error:
        _fail_for_silence()
        _fail(str(error), error.exit_code)
    except SystemExit as error:
        exit_as_asked(error)
    except Exception as error:
        # The process's boundary. What users can cause is a CuaProjectError; this is a bug.
        _fail_for_silence()
        if os.environ.get("CUA_TRACEBACK"):
            raise
        _fail(*_told(error))
    sys.exit(result if isinstance(result, int) else 0)


def _told(error: Exception) -> tuple[str, int]:
    """Message and exit code of what no command foresaw."""
    if message := path_problem(error):
        return message, UsageError.exit_code
    if message := lost_session(error):
        return message, UnreachableError.exit_code
    if isinstance(error, UnicodeEncodeError) and _is_argument(error.object):
        return "an argument is not valid UTF-8; nothing here has such a name", UsageError.exit_code
    return _unexpected(error), CuaProjectError.exit_code


def _fail_for_silence() -> None:
    """When a server's silence ended the sessions, say that instead of what followed from it."""
    if WATCH.gave_up is not None:
        _fail(WATCH.gave_up, UnreachableError.exit_code)


def usage_message(error: click.ClickException) -> str:
    """The message of click in the style of our own, with the command whose help explains it."""
    text = error.format_message().strip().removesuffix(".")
    text = re.sub(r"\(Did you mean (?:one of: )?(.+)\?\)$", r"Did you mean \1?", text)
    text = text.replace("a valid integer range", "a valid integer")
    text = text[:1].lower() + text[1:]
    context = getattr(error, "ctx", None)
    if context is None:
        return text
    return f"{text}{'' if text.endswith('?') else '.'} See `{context.command_path} --help`"


def _fail(message: str, exit_code: int) -> NoReturn:
    logger.error("%s", message)
    flush_or_discard()
    sys.exit(exit_code)


def _is_argument(text: str) -> bool:
    """Whether the user gave the bytes in this text that have no encoding."""
    return any(
        argument.encode(errors="replace").decode() != argument
        and (argument in text or text in argument)
        for argument in sys.argv[1:]
    )


def _unexpected(error: Exception) -> str:
    if message := full_disk(error) or forbidden(error):
        return message
    # On one line: a parent process shows the last line as the reason.
    text = " ".join(str(error).split())
    return (
        f"internal error: {type(error).__name__}: {text}; please report it. CUA_TRACEBACK=1 shows"
        " the traceback"
    )

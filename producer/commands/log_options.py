"""--verbose, --quiet and --log-format: accepted by `cua-train` and after each of its commands."""

import logging
from typing import Any

import rich_click as click

from producer.log_lines import configure_logging

PANEL = "Output"


def add_log_options(command: click.Command) -> click.Command:
    """Add the three options, also to every subcommand. Idempotent."""
    if isinstance(command, click.Group):
        for subcommand in command.commands.values():
            add_log_options(subcommand)
    present = {parameter.name for parameter in command.params}
    command.params += [option for option in _options() if option.name not in present]
    return command


def _options() -> list[click.Option]:
    common: dict[str, Any] = {
        "expose_value": False,
        "is_eager": True,  # an error in another option is logged in the chosen format
        "callback": _configure,
        "panel": PANEL,
    }
    return [
        click.RichOption(
            ["-v", "--verbose"], is_flag=True, help="Log details, and other libraries.", **common
        ),
        click.RichOption(
            ["-q", "--quiet"], is_flag=True, help="Log warnings and errors only.", **common
        ),
        click.RichOption(
            ["--log-format"],
            type=click.Choice(["text", "json"]),
            metavar="text|json",
            help="Format of log lines; json is one object per line. [default: text]",
            **common,
        ),
    ]


def called(context: click.Context) -> click.Context:
    """Of the innermost command that was called from here."""
    innermost: click.Context = context.meta.get(f"{__name__}.called", context)
    return innermost


def flags_of(context: click.Context) -> set[str]:
    """The flags of a command, and of the groups that it is in."""
    of_groups = set() if context.parent is None else flags_of(context.parent)
    return of_groups.union(
        *({*param.opts, *param.secondary_opts} for param in context.command.params)
    )


def _configure(context: click.Context, parameter: click.Parameter, value: object) -> None:
    context.meta[f"{__name__}.called"] = context
    # meta is shared by a command and its parents: what one of them was given stays in force.
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

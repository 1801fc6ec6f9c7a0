"""The options of commands that serve the monitor."""

from collections.abc import Callable
from typing import Any

import rich_click as click


def monitor_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --port, --host and --refresh."""
    for option in (
        click.option(
            "--refresh",
            "refresh_s",
            type=click.IntRange(1, 3600),
            metavar="SECONDS",
            default=3,
            show_default=True,
            help="How often the page of something unfinished reloads itself.",
        ),
        click.option(
            "--host",
            metavar="ADDRESS",
            default="127.0.0.1",
            show_default=True,
            help="Where the monitor listens. There is no password: who reaches another address"
            " reads everything.",
        ),
        click.option(
            "--port",
            type=click.IntRange(0, 65535),
            metavar="PORT",
            help="The monitor's port. [default: 8321, or a free one if that is taken]",
        ),
    ):
        command = option(command)
    return command

"""The options of commands that can serve `/metrics` and `/healthz`."""

from collections.abc import Callable
from typing import Any

import rich_click as click


def metrics_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --metrics-port and --metrics-host."""
    for option in (
        click.option(
            "--metrics-host",
            metavar="ADDRESS",
            default="127.0.0.1",
            show_default=True,
            help="Where --metrics-port listens; there is no password.",
        ),
        click.option(
            "--metrics-port",
            type=click.IntRange(0, 65535),
            metavar="PORT",
            help="Serve /metrics and /healthz on this port; 0 takes a free one.",
        ),
    ):
        command = option(command)
    return command

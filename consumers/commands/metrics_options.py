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
            help="Address on which --metrics-port listens, without access control.",
        ),
        click.option(
            "--metrics-port",
            type=click.IntRange(0, 65535),
            metavar="PORT",
            help="Serve /metrics and /healthz on this port; 0 chooses a free one.",
        ),
    ):
        command = option(command)
    return command

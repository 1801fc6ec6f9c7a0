"""The options of commands that serve the monitor."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

if TYPE_CHECKING:
    from consumers.monitor.start import Listening


def monitor_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --port, --host and --token-file."""
    for option in (
        click.option(
            "--token-file",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Require the token in this file in every request. Only you may read the file.",
        ),
        click.option(
            "--host",
            metavar="ADDRESS",
            default="127.0.0.1",
            show_default=True,
            help="Address to listen on. Without --token-file, everybody who can reach it can read"
            " everything.",
        ),
        click.option(
            "--port",
            type=click.IntRange(0, 65535),
            metavar="PORT",
            help="Port to listen on. [default: 8321, or a free one if that is taken]",
        ),
    ):
        command = option(command)
    return command


def listening(port: int | None, host: str, token_file: Path | None) -> "Listening":
    """What the options say. UsageError for the token file."""
    from consumers.monitor.access import read_access
    from consumers.monitor.start import Listening

    access = None if token_file is None else read_access(token_file)
    return Listening(port, host, access)

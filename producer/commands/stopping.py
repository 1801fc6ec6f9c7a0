"""Handles Ctrl-C and SIGTERM: the first one stops gracefully, the second one immediately."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from click.exceptions import Exit

from producer.commands.shell import withheld
from producer.errors import StopRequestedError
from schemas.shutdown import shutdown_on_signals

logger = logging.getLogger(__name__)


@contextmanager
def exit_when_stopped(note: Callable[[], str] = str) -> Iterator[threading.Event]:
    """Yield an event that the first SIGINT or SIGTERM sets; the second raises KeyboardInterrupt.

    On StopRequestedError, log `note` and exit with 130.
    """
    try:
        yield shutdown_on_signals(abort=True).graceful
    except StopRequestedError:
        logger.info("stopped%s", f"; {text}" if (text := note()) else "")
        raise Exit(130) from None


@contextmanager
def continued_by(
    command_of: Callable[[str, Path], str], *, database: bool = False
) -> Iterator[tuple[threading.Event, Callable[[str, Path], None]]]:
    """Yield the event of `exit_when_stopped`, and a function to call once a training is open.

    `command_of` makes, from the training's name and folder, the command that continues it. The
    command is logged when the training opens and when it is stopped. `database` tells whether it
    needs the database's address too.
    """
    command = ""

    def on_open(name: str, run_folder: Path) -> None:
        nonlocal command
        command = command_of(name, run_folder)
        logger.info("training: %s", name)
        logger.info("continue it with: %s", command)
        if secrets := withheld(database=database):
            logger.info("set %s there first: secrets are not printed", ", ".join(secrets))
        logger.info("state and checkpoints: %s", run_folder)

    with exit_when_stopped(lambda: f"continue with: {command}" if command else "") as stop:
        yield stop, on_open

"""Handles Ctrl-C and SIGTERM: the first one stops gracefully, the second one immediately."""

import _thread
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from click.exceptions import Exit

from producer.commands.shell import withheld
from producer.errors import StopRequestedError

logger = logging.getLogger(__name__)


def stop_on_signals() -> threading.Event:
    """An event that is set by the first SIGINT or SIGTERM; the second raises KeyboardInterrupt."""
    stop = threading.Event()
    is_second = False

    def begin_to_stop(number: int) -> None:
        if number == signal.SIGINT:  # SIGTERM comes from a program
            logger.info("stopping gracefully; press Ctrl-C again to abort")
        stop.set()

    def on_signal(number: int, _frame: FrameType | None) -> None:
        nonlocal is_second
        if is_second:
            raise KeyboardInterrupt
        is_second = True
        # Not in the handler: it may interrupt a thread that holds the event's lock or that writes a
        # log line.
        with suppress(RuntimeError):  # the interpreter is ending anyway
            _thread.start_new_thread(begin_to_stop, (number,))

    signal.signal(signal.SIGINT, on_signal)
    signal.signal(signal.SIGTERM, on_signal)
    return stop


@contextmanager
def exit_when_stopped(note: Callable[[], str] = str) -> Iterator[threading.Event]:
    """Yield the event of `stop_on_signals`. On StopRequestedError, log `note` and exit with 130."""
    try:
        yield stop_on_signals()
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

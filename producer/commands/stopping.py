"""Ctrl-C and SIGTERM: the first stops gracefully, the second at once."""

import _thread
import logging
import signal
import threading
from contextlib import suppress
from types import FrameType

logger = logging.getLogger(__name__)


def stop_on_signals() -> threading.Event:
    """An event that the first SIGINT or SIGTERM sets; the second raises KeyboardInterrupt."""
    stop = threading.Event()
    is_second = False

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        nonlocal is_second
        if is_second:
            raise KeyboardInterrupt
        is_second = True
        # Not here: a handler interrupts its thread anywhere, also where it holds the event's lock.
        with suppress(RuntimeError):  # the interpreter is ending anyway
            _thread.start_new_thread(stop.set, ())
        logger.info("stopping gracefully; press Ctrl-C again to abort")

    signal.signal(signal.SIGINT, on_signal)
    signal.signal(signal.SIGTERM, on_signal)
    return stop

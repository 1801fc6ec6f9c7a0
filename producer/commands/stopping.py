"""Ctrl-C and SIGTERM: the first stops gracefully, the second at once."""

import logging
import signal
import threading
from types import FrameType

logger = logging.getLogger(__name__)


def stop_on_signals() -> threading.Event:
    """An event that the first SIGINT or SIGTERM sets; the second raises KeyboardInterrupt."""
    stop = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        logger.info("stopping gracefully; press Ctrl-C again to abort")

    signal.signal(signal.SIGINT, on_signal)
    signal.signal(signal.SIGTERM, on_signal)
    return stop

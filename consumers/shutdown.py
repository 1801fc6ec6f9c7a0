"""Shutdown signals: the first SIGINT or SIGTERM is graceful, the second immediate.

Imports nothing heavy, so that handlers are in place before a command loads its libraries.
"""

import logging
import signal
import threading
from dataclasses import dataclass, field

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Shutdown:
    """Events that a signal handler or another thread sets. Thread-safe."""

    graceful: threading.Event = field(default_factory=threading.Event)
    """Finish the work at hand, then end."""
    immediate: threading.Event = field(default_factory=threading.Event)
    """End now; what is unfinished is done again by the next start."""


def shutdown_on_signals(*, abort: bool = False) -> Shutdown:
    """Install the handlers. Main thread only.

    With `abort` the second signal also raises KeyboardInterrupt in the main thread, for a command
    that does its work there.
    """
    shutdown = Shutdown()

    def on_signal(number: int, _frame: object) -> None:
        if shutdown.graceful.is_set():
            shutdown.immediate.set()
            if abort:
                raise KeyboardInterrupt
            return
        shutdown.graceful.set()
        if number == signal.SIGINT:  # SIGTERM comes from a program, which needs no hint
            logger.info("stopping gracefully; press Ctrl-C again to abort")

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    # Whoever started this process may have held them until now.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    return shutdown

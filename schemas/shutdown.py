"""Shutdown signals: the first SIGINT or SIGTERM is graceful, the second immediate.

Imports nothing heavy, so that handlers are in place before a command loads its libraries.
"""

import _thread
import logging
import signal
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

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
    is_second = False

    def begin_to_stop(number: int) -> None:
        if number == signal.SIGINT:  # SIGTERM comes from a program
            logger.info("stopping gracefully; press Ctrl-C again to abort")
        shutdown.graceful.set()

    def on_signal(number: int, _frame: object) -> None:
        nonlocal is_second
        begin = shutdown.immediate.set if is_second else partial(begin_to_stop, number)
        # Not here: a handler interrupts its thread anywhere, also where it holds the event's lock
        # or writes a log line.
        with suppress(RuntimeError):  # the interpreter is ending anyway
            _thread.start_new_thread(begin, ())
        if is_second and abort:
            raise KeyboardInterrupt
        is_second = True

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    # Whoever started this process may have held them until now.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    return shutdown

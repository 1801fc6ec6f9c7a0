"""SIGINT, SIGTERM and SIGHUP during a `tail`: at once while it reads, after the record it prints.

What is printed and what the cursor names are then the same, whenever the signal comes.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequested(KeyboardInterrupt):  # as the exception it is
    """A signal asked for the end."""


class Stop:
    """Whether the end was asked for. For the main thread."""

    def __init__(self) -> None:
        self.requested = False
        self.is_urgent = False
        """A second signal came: nothing more is waited for."""
        self._is_held = False

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Handle signals inside the block; elsewhere than in the main thread they stay as are."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._on_signal) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_signal(self, _number: int, _frame: object) -> None:
        self.is_urgent, self.requested = self.requested, True
        if not self._is_held:
            raise StopRequested

    def hold(self) -> None:
        """From here on a signal is only noted."""
        self._is_held = True

    def release(self) -> None:
        """A signal raises StopRequested again; so does one that was noted."""
        self._is_held = False
        if self.requested:
            raise StopRequested

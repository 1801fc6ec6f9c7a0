"""What the outside wants of a process that runs until it is told to stop.

Light, so that signals are heard before anything is loaded.
"""

import signal
import threading
from dataclasses import dataclass, field


@dataclass(slots=True)
class Shutdown:
    """Set from a signal handler or another thread."""

    stop: threading.Event = field(default_factory=threading.Event)
    """Finish what there is to do, then end."""
    immediate: threading.Event = field(default_factory=threading.Event)
    """End now."""


def shutdown_on_signals() -> Shutdown:
    """The first SIGINT or SIGTERM is `stop`, the second `hurry`. Only in the main thread."""
    shutdown = Shutdown()

    def on_signal(_number: int, _frame: object) -> None:
        (shutdown.immediate if shutdown.stop.is_set() else shutdown.stop).set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    return shutdown

"""Names what a blocking call waits for, once it has taken some seconds.

A server that is stopped, or whose host hangs, takes connections and answers nothing.
"""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger(__name__)

SAY_AFTER_S = 5.0
SAY_AGAIN_S = 60.0


class SlowAnswers:
    """Waits for one server. Thread-safe: several may wait, and one message a minute is enough."""

    def __init__(self, server: str) -> None:
        """`server`: as it is called in messages."""
        self._server = server
        self._lock = threading.Lock()
        self._said_at = -SAY_AGAIN_S

    @contextmanager
    def waiting(self, after_s: float = SAY_AFTER_S) -> Iterator[None]:
        """Says so when the block takes longer than `after_s`."""
        timer = threading.Timer(after_s, self._say, (after_s,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _say(self, seconds: float) -> None:
        with self._lock:
            if time.monotonic() - self._said_at < SAY_AGAIN_S:
                return
            self._said_at = time.monotonic()
        logger.warning(
            "waiting for %s: it takes connections but has not answered for %.0f s",
            self._server,
            seconds,
        )

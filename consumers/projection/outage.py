"""An outage of the database or the log, from the last success to the next."""

import logging
from collections.abc import Callable

logger = logging.getLogger(__name__)

RETRY_S = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Pauses after failures; the last one repeats."""


class Outage:
    """Logs when an outage begins, changes and ends, not every retry (700 in an hour)."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock`: seconds."""
        self._clock = clock
        self._succeeded_at = clock()
        self._reason = ""
        self._num_failures = 0

    @property
    def seconds(self) -> float:
        """Since the last success."""
        return self._clock() - self._succeeded_at

    def failed(self, reason: str) -> float:
        """Note a failure; how many seconds to wait before the next try."""
        if reason != self._reason:
            logger.warning("%s; retrying until it works", reason)
            self._reason = reason
        self._num_failures += 1
        return RETRY_S[min(self._num_failures, len(RETRY_S)) - 1]

    def over(self) -> None:
        """Note a success."""
        if self._reason:
            logger.info("works again after %.0f s", self.seconds)
        self._reason = ""
        self._num_failures = 0
        self._succeeded_at = self._clock()

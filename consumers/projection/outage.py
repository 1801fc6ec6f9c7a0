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

    def failed(self, reason: str, limit_s: float | None = None) -> float:
        """Note a failure; how many seconds to wait before the next try.

        `limit_s`: for how long there are retries; None: without end.
        """
        if reason != self._reason:
            how_long = "until it works" if limit_s is None else f"for up to {limit_s:g} s"
            logger.warning("%s; retrying %s", reason, how_long)
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

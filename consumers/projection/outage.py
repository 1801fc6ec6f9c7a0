"""A failure that is waited out, from the last thing that worked to the next.

Said when it begins, when it changes and when it is over.
"""

from collections.abc import Callable

RETRY_S = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Pauses after failures; the last one repeats."""


class Outage:
    """What keeps a projector from working.

    Over an hour it is tried some 700 times and said once.
    """

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float]) -> None:
        """`clock`: seconds."""
        self._say = say
        self._clock = clock
        self._worked_at = clock()
        self._said = ""
        self._num_failures = 0

    @property
    def seconds(self) -> float:
        """Since something last worked."""
        return self._clock() - self._worked_at

    def failed(self, why: str) -> float:
        """Note a failure; how many seconds to wait before the next try."""
        if why != self._said:
            self._say(f"{why}; trying again until it works")
            self._said = why
        self._num_failures += 1
        return RETRY_S[min(self._num_failures, len(RETRY_S)) - 1]

    def over(self) -> None:
        """Something works."""
        if self._said:
            self._say(f"it works again after {self.seconds:.0f} s; going on")
        self._said = ""
        self._num_failures = 0
        self._worked_at = self._clock()

"""What a projector is doing now, read by other threads (`/healthz`, `/metrics`)."""

import time
from collections.abc import Callable
from typing import Literal

State = Literal["starting", "projecting", "standby", "failing"]

SILENT_AFTER_S = 30.0
"""Without a success, or a look at another projector's lease, for so long: something is away."""


class Activity:
    """Written by the projector's thread, read by any. Every attribute is one assignment."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        silence: Callable[[], str | None] = lambda: None,
    ) -> None:
        """`clock`: seconds. `silence`: which server the process waits for, which answers nothing.

        Whoever waits for an answer can say nothing itself.
        """
        self._clock = clock
        self._silence = silence
        self._began_at = self._well_at = self._committed_at = clock()
        self._state: State = "starting"
        self._reason = ""
        self._num_before = self._num_events = 0

    def began(self) -> None:
        """A run of the projector begins; it counts its events from zero."""
        self._num_before, self._num_events = self._num_before + self._num_events, 0
        self._well_at = self._clock()

    def worked(self, num_events: int, *, has_committed: bool) -> None:
        """The log and the database answered; `num_events` were applied since `began`."""
        self._num_events = num_events
        self._well_at = self._clock()
        if has_committed:
            self._committed_at = self._well_at
        self._state, self._reason = "projecting", ""

    def stood_by(self, reason: str) -> None:
        """Another projector holds the lease."""
        self._well_at = self._clock()
        self._state, self._reason = "standby", reason

    def failed(self, reason: str) -> None:
        """The log or the database is away."""
        self._state, self._reason = "failing", reason

    @property
    def state(self) -> State:
        """The latest that was noted; failing when it was noted too long ago."""
        return "failing" if self.problem() is not None else self._state

    @property
    def num_events(self) -> int:
        """Records applied by this process."""
        return self._num_before + self._num_events

    @property
    def seconds_since_commit(self) -> float:
        """Since the last commit of this process; before the first, since its start."""
        return self._clock() - self._committed_at

    def problem(self) -> str | None:
        """Why the projector is unhealthy; None while it projects, waits or has just begun."""
        silent_s = self._clock() - self._well_at
        if silent_s <= SILENT_AFTER_S:
            return None
        reason = self._silence() or self._reason or "neither the log nor the database has answered"
        return f"no progress for {silent_s:.0f} s: {reason}"

    def describe(self) -> str:
        """The state with its reason, for people."""
        return f"{self.state}: {self._reason}" if self._reason else self.state

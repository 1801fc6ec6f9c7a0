"""How far a projector is behind the end that the log had when it began: progress, and its end."""

import logging
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from consumers.log.reader import TopicPartition
from consumers.progress import ReplayProgress
from consumers.projection.positions import Positions

logger = logging.getLogger(__name__)


class CatchingUp:
    """From a projector's start positions to the end of the log at that time.

    A context manager. Not thread-safe; never blocks.
    """

    def __init__(
        self,
        start: Positions,
        until: Positions,
        on_caught_up: Callable[[], None],
        *,
        announces: bool,
    ) -> None:
        """`on_caught_up` is called once. `announces`: it is worth a message."""
        self.start = start
        self.until = until
        self._on_caught_up = on_caught_up
        self._announces = announces
        self._began_at = time.monotonic()
        self._progress = ReplayProgress(self.num_records, verb="projected")
        self._progress.advance_to(0)
        self.is_over = False
        """The end was reached."""

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the bar."""
        self._progress.close()

    @property
    def num_records(self) -> int:
        """Offsets from the start to the end."""
        return self._behind(self.start)

    def _behind(self, positions: Mapping[TopicPartition, int]) -> int:
        return sum(
            max(0, end - positions.get(at, self.start.get(at, 0))) for at, end in self.until.items()
        )

    def reached(self, positions: Mapping[TopicPartition, int]) -> None:
        """Everything before these positions is committed."""
        if self.is_over:
            return
        behind = self._behind(positions)
        if behind:
            self._progress.advance_to(self.num_records - behind)
            return
        self.is_over = True
        self._progress.close()
        self._on_caught_up()
        if self._announces:
            seconds = time.monotonic() - self._began_at
            rate = f" ({self.num_records / seconds:,.0f}/s)" if self.num_records else ""
            logger.info(
                "caught up with the log: %s records in %.1f s%s; following it",
                f"{self.num_records:,}",
                seconds,
                rate,
            )

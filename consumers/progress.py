"""Progress of a long replay: a bar on a terminal, elsewhere a log line every ten seconds.

rich is imported only when stderr is a terminal; it honours NO_COLOR and the terminal's width.
"""

import logging
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress

logger = logging.getLogger(__name__)

LOG_EVERY_S = 10.0
SHOW_AFTER_S = 1.0
"""A replay that is over sooner shows no bar."""


class ReplayProgress:
    """How much of a replay is done, with its rate and the time left. Never blocks.

    Not thread-safe; a context manager that removes the bar. `total_records` may grow.
    """

    def __init__(
        self,
        total_records: int = 0,
        *,
        verb: str = "replayed",
        clock: Callable[[], float] = time.monotonic,
        is_terminal: bool | None = None,
    ) -> None:
        """`verb`: what the records are by now. `is_terminal`: None asks stderr."""
        self.total_records = total_records
        self._verb = verb
        self._clock = clock
        self._is_terminal = sys.stderr.isatty() if is_terminal is None else is_terminal
        self._began_at = self._said_at = clock()
        self._start: int | None = None
        self._done = 0
        self._bar: Progress | None = None

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def advance_to(self, done: int, total_records: int | None = None) -> None:
        """`done` records of the total are applied; the first call only sets where it began."""
        if total_records is not None:
            self.total_records = total_records
        self._done = done
        now = self._clock()
        if self._start is None:
            self._start, self._began_at, self._said_at = done, now, now
        elif self._is_terminal and logger.isEnabledFor(logging.INFO):
            self._draw(now)
        elif now - self._said_at >= LOG_EVERY_S:
            self._said_at = now
            logger.info("%s", self.describe())

    def describe(self) -> str:
        """One line: how far, how fast, how long still."""
        rate = self.rate()
        total = max(self.total_records, self._done)
        percent = 100 * self._done / total if total else 100.0
        text = f"{self._verb} {self._done:,} of {total:,} records ({percent:.0f} %)"
        if rate <= 0:
            return text
        return f"{text}, {rate:,.0f}/s, {_duration((total - self._done) / rate)} left"

    def rate(self) -> float:
        """Records per second since the first call of `advance_to`; 0 when unknown."""
        elapsed_s = self._clock() - self._began_at
        return (self._done - (self._start or 0)) / elapsed_s if elapsed_s > 0 else 0.0

    def close(self) -> None:
        """Remove the bar. Idempotent."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _draw(self, now: float) -> None:
        if self._bar is None:
            if now - self._began_at < SHOW_AFTER_S:
                return
            self._bar = _bar()
            self._bar.add_task(self._verb, total=None, rate="")
            self._bar.start()
        (task,) = self._bar.task_ids
        rate = self.rate()
        left_s = (max(self.total_records, self._done) - self._done) / rate if rate > 0 else 0.0
        self._bar.update(
            task,
            total=max(self.total_records, self._done),
            completed=self._done,
            rate=f"{rate:,.0f}/s, {_duration(left_s)} left",
        )


def _bar() -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn
    from rich.progress import TextColumn as Text

    return Progress(
        Text("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        MofNCompleteColumn(),
        Text("{task.fields[rate]}"),
        console=Console(stderr=True),
        transient=True,
    )


def _duration(seconds: float) -> str:
    whole = max(0, round(seconds))
    if whole < 120:  # noqa: PLR2004  # two minutes read better in seconds
        return f"{whole} s"
    minutes, whole = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {whole} s"

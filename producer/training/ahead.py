"""Collects the rollouts of later steps on its own thread while a step is trained.

A step is trained on by the version that the previous step produced, so the age of its rollouts is
known when they begin. No step begins earlier than allowed, so nothing collected is too old.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from producer.training.step import CollectedStep

logger = logging.getLogger(__name__)

POLL_S = 0.5
"""Longest time until a stop request is noticed."""
CLOSE_S = 60.0
"""How long an ending run waits for the thread; the engine gives devices 5 s to close."""


class EitherStop(threading.Event):
    """Set when it or another event is set."""

    def __init__(self, other: threading.Event) -> None:
        super().__init__()
        self._other = other

    def is_set(self) -> bool:
        """Whether this event or the other one is set."""
        return super().is_set() or self._other.is_set()


class CollectAhead:
    """Collects steps in order, at most `max_ahead` policy versions before they are trained on.

    Guarantees: one step is collected at a time. Step n begins after step n - 1 - `max_ahead` was
    trained; none begins while `paused`. An exception of the collecting thread is raised by `take`
    of a missing step, or by `paused`. Leaving the context stops the thread and cancels running
    rollouts.
    """

    def __init__(
        self,
        collect: Callable[[int], CollectedStep],
        steps: range,
        *,
        max_ahead: int,
        stop: EitherStop,
        check_stop: Callable[[], None],
    ) -> None:
        """`collect` runs on the thread and returns soon after `stop` is set.

        `check_stop` raises to stop the caller.
        """
        self._collect = collect
        self._steps = steps
        self._max_ahead = max_ahead
        self._stop = stop
        self._check_stop = check_stop
        self._changed = threading.Condition()
        self._collected: dict[int, CollectedStep] = {}
        self._last_trained = steps.start - 1
        self._is_paused = self._is_busy = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="cua-collect-ahead", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._changed:
            self._stop.set()
            self._changed.notify_all()
        self._thread.join(CLOSE_S)
        if self._thread.is_alive():
            logger.warning("rollouts that were collected ahead do not end; the run ends without")

    def take(self, step: int) -> CollectedStep:
        """Wait for the step's rollouts. Raises the collecting thread's exception."""
        with self._changed:
            self._wait(lambda: step in self._collected)
            return self._collected.pop(step)

    def trained(self, step: int) -> None:
        """Tell the thread that the policy was updated with the step and its state saved."""
        with self._changed:
            self._last_trained = step
            self._changed.notify_all()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Inside the context nothing is collected; waits for the step in progress first."""
        with self._changed:
            self._is_paused = True
            self._wait(lambda: not self._is_busy)
        try:
            yield
        finally:
            with self._changed:
                self._is_paused = False
                self._changed.notify_all()

    def _wait(self, is_reached: Callable[[], bool]) -> None:
        """Wait for `is_reached`; call with the lock held."""
        while not is_reached():
            self._check_stop()
            if self._error is not None:
                raise self._error
            self._changed.wait(POLL_S)

    def _may_begin(self, step: int) -> bool:
        return not self._is_paused and step - 1 - self._max_ahead <= self._last_trained

    def _run(self) -> None:
        for step in self._steps:
            with self._changed:
                while not self._stop.is_set() and not self._may_begin(step):
                    self._changed.wait(POLL_S)
                if self._stop.is_set():
                    return
                self._is_busy = True
            try:
                collected = self._collect(step)
            except BaseException as error:  # noqa: BLE001  # the thread's boundary
                self._end(error)
                return
            with self._changed:
                self._collected[step] = collected
                self._is_busy = False
                self._changed.notify_all()

    def _end(self, error: BaseException) -> None:
        with self._changed:
            self._error = error
            self._is_busy = False
            self._changed.notify_all()

"""Progress and remaining time of a training, its steps and its evaluations.

Work is counted in turns. A finished rollout counts its actual turns; an unfinished or future one is
assumed to take `max_turns`. A step's update counts as many turns as its rollouts, so it is half of
the step. Percentages never decrease within a process; the next one counts anew what is finished.
Only `ProgressEvents` reads a clock.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic

from producer.emit import StreamWriter
from schemas.base import Progress
from schemas.catalogue import stream_kind
from schemas.training import Phase, TrainingProgressed


@dataclass(slots=True)
class Unit:
    """A step or an evaluation."""

    num_rollouts: int
    max_turns: int
    """Maximum turns of one rollout."""
    is_step: bool
    finished_rollouts: int = 0
    finished_turns: int = 0
    """Turns of finished rollouts."""
    given_up_rollouts: int = 0
    """Rollouts that will have no result."""
    is_trained: bool = False
    """Whether the step's update is done."""
    highest_percent: float = 0.0
    """The percentage that this process reported before."""

    def finish(self) -> None:
        """Mark as done by an earlier process, with every rollout at `max_turns`."""
        self.finished_rollouts = self.num_rollouts
        self.finished_turns = self.num_rollouts * self.max_turns
        self.is_trained = True

    @property
    def expected_turns(self) -> int:
        """Total number of turns that its rollouts are expected to take."""
        return (
            self.finished_turns
            + max(0, self.num_rollouts - self.finished_rollouts - self.given_up_rollouts)
            * self.max_turns
        )

    @property
    def total(self) -> float:
        """Total work in turns, including the update."""
        return self.expected_turns * (2 if self.is_step else 1)

    @property
    def done(self) -> float:
        """Work done so far, in turns."""
        update = self.expected_turns if self.is_step and self.is_trained else 0
        return self.finished_turns + update

    @property
    def rollout_percent(self) -> float:
        """Progress of only the rollouts."""
        return 100.0 * self.finished_turns / self.expected_turns if self.expected_turns else 100.0

    @property
    def update_percent(self) -> float:
        """Progress of only the update, which a resumed step repeats."""
        return 100.0 if self.is_trained else 0.0


@dataclass(slots=True)
class ProgressTracker:
    """Progress over all units of a training, including those that have not started."""

    concurrency: int
    """Number of rollouts that run at once."""
    units: list[Unit] = field(default_factory=list)
    turn_seconds: float = 0.0
    """Duration of `num_turns` turns in total."""
    num_turns: int = 0
    elapsed_s: float = 0.0
    """Time since the training started; set by the tracker's owner."""
    highest_percent: float = 0.0

    def turn_taken(self, seconds: float, num_turns: int) -> None:
        """Record `num_turns` turns that took `seconds` in total."""
        self.turn_seconds += seconds
        self.num_turns += num_turns

    def of(self, unit: Unit) -> Progress:
        """Progress of one unit."""
        percent = 100.0 * unit.done / unit.total if unit.total else 0.0
        unit.highest_percent = max(unit.highest_percent, percent)
        return self._progress(unit.highest_percent, unit.total - unit.done)

    def of_all(self) -> Progress:
        """Progress of the whole training."""
        total = sum(unit.total for unit in self.units)
        done = sum(unit.done for unit in self.units)
        self.highest_percent = max(self.highest_percent, 100.0 * done / total if total else 0.0)
        return self._progress(self.highest_percent, total - done)

    def finished(self) -> Progress:
        """100 %, nothing remaining."""
        return self._progress(100.0, 0.0)

    def _progress(self, percent: float, remaining_turns: float) -> Progress:
        if not self.num_turns:
            return Progress(percent=min(percent, 100.0))
        average_s = self.turn_seconds / self.num_turns
        remaining_s = remaining_turns * average_s / self.concurrency
        return Progress(
            percent=min(percent, 100.0),
            avg_turn_time_s=average_s,
            estimated_total_time_s=self.elapsed_s + remaining_s,
            estimated_remaining_time_s=remaining_s,
        )


EVERY_S = 1.0


@dataclass(slots=True)
class ProgressEvents:
    """Emits the progress of one process's part of a training. Thread-safe."""

    stream: StreamWriter
    """Stream of the training or of a manual evaluation, which emits no training progress."""
    tracker: ProgressTracker
    current_step: int = 0
    phase: Phase = "initialization"
    _begun_s: float = field(default_factory=monotonic)
    _emitted_s: float = float("-inf")
    _lock: threading.RLock = field(default_factory=threading.RLock)
    """Held so that a figure is emitted before a higher one is computed."""

    def throttled(self, emit_part: Callable[[], None]) -> None:
        """Emit a part's progress, then the training's; at most once per second."""
        with self._lock:
            now_s = monotonic()
            if now_s - self._emitted_s >= EVERY_S:
                self._emitted_s = now_s
                self.update_elapsed()
                emit_part()
                self.emit()

    def emit(self) -> None:
        """Emit the training's progress now."""
        if stream_kind(self.stream.subject) != "training":
            return
        with self._lock:
            self.stream.emit(
                TrainingProgressed(
                    current_phase=self.phase,
                    current_step=self.current_step,
                    progress=self.tracker.of_all(),
                )
            )

    def update_elapsed(self) -> None:
        """Update the tracker's elapsed time of this process."""
        self.tracker.elapsed_s = monotonic() - self._begun_s

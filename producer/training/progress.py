"""How far a training is and how long it will take: the one progress function.

Pure; fed with turns, asked for `Progress`.

Work is counted in turns. A finished rollout counts its real turns on both sides, an unfinished one
budgets `max_turns`, so does one that does not exist yet. A step is half rollouts, half training:
its update counts as many turns as its rollouts. Progress never falls.
"""

from dataclasses import dataclass, field

from schemas.base import Progress


@dataclass(slots=True)
class Unit:
    """A step or an evaluation."""

    num_rollouts: int
    max_turns: int
    """Budget of one rollout."""
    is_step: bool
    finished_rollouts: int = 0
    finished_turns: int = 0
    """Turns of finished rollouts."""
    running_turns: int = 0
    """Turns taken by rollouts that are not finished."""
    is_trained: bool = False
    """For a step: its update is done."""
    highest_percent: float = 0.0

    @property
    def expected_turns(self) -> int:
        """Turns of its rollouts, as known now."""
        return (
            self.finished_turns
            + max(0, self.num_rollouts - self.finished_rollouts) * self.max_turns
        )

    @property
    def total(self) -> float:
        """All of its work, in turns."""
        return self.expected_turns * (2 if self.is_step else 1)

    @property
    def done(self) -> float:
        """Work done, in turns."""
        turns = min(self.finished_turns + self.running_turns, self.expected_turns)
        return turns + (self.expected_turns if self.is_step and self.is_trained else 0)

    @property
    def rollout_percent(self) -> float:
        """Progress of the rollouts alone."""
        return (
            100.0
            if not self.expected_turns
            else 100.0
            * min(self.finished_turns + self.running_turns, self.expected_turns)
            / self.expected_turns
        )


@dataclass(slots=True)
class ProgressTracker:
    """The units of a training, in order; those that do not exist yet are budgeted."""

    concurrency: int
    """Rollouts that run at once."""
    units: list[Unit] = field(default_factory=list)
    turn_seconds: float = 0.0
    num_turns: int = 0
    elapsed_s: float = 0.0
    highest_percent: float = 0.0

    def turn_taken(self, seconds: float, num_turns: int) -> None:
        """These turns took so long together."""
        self.turn_seconds += seconds
        self.num_turns += num_turns

    def of(self, unit: Unit) -> Progress:
        """Progress of one unit."""
        percent = 100.0 * unit.done / unit.total if unit.total else 0.0
        unit.highest_percent = max(unit.highest_percent, percent)
        return self._progress(unit.highest_percent, unit.total - unit.done)

    def of_all(self) -> Progress:
        """Progress of the training."""
        total = sum(unit.total for unit in self.units)
        done = sum(unit.done for unit in self.units)
        self.highest_percent = max(self.highest_percent, 100.0 * done / total if total else 0.0)
        return self._progress(self.highest_percent, total - done)

    def finished(self) -> Progress:
        """Progress of whatever is done."""
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

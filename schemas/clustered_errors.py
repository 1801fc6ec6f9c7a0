"""Standard errors of success rates and of their differences, clustered by task.

Episodes of one task are not independent: a task that is solved once is mostly solved again. So the
task is the sampling unit (cluster-robust variance with the small-sample factor G / (G - 1); Miller,
"Adding Error Bars to Evals", 2024, arXiv:2411.00640). With a single task the error is that over its
episodes: it does not cover other tasks.
"""

import math
from collections.abc import Collection, Mapping
from typing import NamedTuple

MIN_TASKS = 6
"""With five, even a change of every task has probability 1/16 by chance (sign test, two-sided)."""


class TaskCount(NamedTuple):
    """The judged episodes of one task."""

    successes: int
    episodes: int


class Difference(NamedTuple):
    """Success after minus success before, over the tasks of both."""

    gain: float
    standard_error: float
    num_tasks: int

    @property
    def is_significant(self) -> bool:
        """Whether it is more than two standard errors, over MIN_TASKS or more."""
        return self.num_tasks >= MIN_TASKS and abs(self.gain) > 2 * self.standard_error


def clustered_standard_error(by_task: Mapping[str, TaskCount]) -> float:
    """Of the success rate over all episodes: sqrt(G / (G - 1) sum_g r_g^2).

    r_g is (successes of task g - its episodes * the rate) / all episodes. 0 without episodes.
    """
    counts = [count for count in by_task.values() if count.episodes]
    if len(counts) == 1:
        return _binomial(counts[0])
    return _clustered(_residuals(by_task).values())


def paired_difference(
    before: Mapping[str, TaskCount], after: Mapping[str, TaskCount]
) -> Difference | None:
    """Of two evaluations of the same tasks on the same seeds; None when they share no task.

    The residuals of a task are subtracted before they are squared, so what makes a task easy or
    hard for both policies cancels out.
    """
    shared = sorted(name for name in before.keys() & after.keys() if _both(before, after, name))
    if not shared:
        return None
    old, new = ({name: counts[name] for name in shared} for counts in (before, after))
    gain = _rate(new) - _rate(old)
    if len(shared) == 1:
        error = math.hypot(_binomial(old[shared[0]]), _binomial(new[shared[0]]))
    else:
        of_old, of_new = _residuals(old), _residuals(new)
        error = _clustered([of_new[name] - of_old[name] for name in shared])
    return Difference(gain, error, len(shared))


def _both(before: Mapping[str, TaskCount], after: Mapping[str, TaskCount], name: str) -> bool:
    return before[name].episodes > 0 and after[name].episodes > 0


def _rate(by_task: Mapping[str, TaskCount]) -> float:
    episodes = sum(count.episodes for count in by_task.values())
    return sum(count.successes for count in by_task.values()) / episodes


def _residuals(by_task: Mapping[str, TaskCount]) -> dict[str, float]:
    episodes = sum(count.episodes for count in by_task.values())
    if not episodes:
        return {}
    rate = _rate(by_task)
    return {
        name: (count.successes - count.episodes * rate) / episodes
        for name, count in by_task.items()
        if count.episodes
    }


def _clustered(residuals: Collection[float]) -> float:
    if len(residuals) < 2:  # noqa: PLR2004  # a variance needs two
        return 0.0
    factor = len(residuals) / (len(residuals) - 1)
    return math.sqrt(factor * math.fsum(residual * residual for residual in residuals))


def _binomial(count: TaskCount) -> float:
    rate = count.successes / count.episodes
    return math.sqrt(rate * (1 - rate) / count.episodes)

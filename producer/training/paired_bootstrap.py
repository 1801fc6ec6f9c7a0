"""Bootstrap over tasks of a paired difference in success. Uses only the standard library.

Tasks are drawn with replacement, each with its episodes of both evaluations (the cluster bootstrap;
Cameron, Gelbach, Miller 2008, with the percentile interval of Efron 1979).
"""

import random
from collections.abc import Mapping
from typing import Final, NamedTuple

from schemas.clustered_errors import MIN_TASKS, TaskCount

NUM_RESAMPLES: Final = 10_000
"""With this many, the bounds of two seeds differ by about 1 % of the interval's width."""
SEED: Final = 0
COVERAGE: Final = 0.95


class Interval(NamedTuple):
    """Interval of a difference in success rates."""

    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether zero lies outside the interval."""
        return self.low > 0 or self.high < 0


def bootstrap_interval(
    before: Mapping[str, TaskCount],
    after: Mapping[str, TaskCount],
    *,
    num_resamples: int = NUM_RESAMPLES,
    seed: int = SEED,
) -> Interval | None:
    """The 95 % interval of success after minus before, over the tasks that both have.

    None if they share fewer than `MIN_TASKS` tasks.
    """
    shared = [
        (before[name], after[name])
        for name in sorted(before.keys() & after.keys())
        if before[name].episodes and after[name].episodes
    ]
    if len(shared) < MIN_TASKS:
        return None
    generator = random.Random(seed)  # noqa: S311  # reproducible, not secret
    gains = sorted(_gain(generator.choices(shared, k=len(shared))) for _ in range(num_resamples))
    left_out = round(num_resamples * (1 - COVERAGE) / 2)
    return Interval(gains[left_out], gains[num_resamples - 1 - left_out])


def _gain(tasks: list[tuple[TaskCount, TaskCount]]) -> float:
    old_right = old_all = new_right = new_all = 0
    for old, new in tasks:
        old_right += old[0]
        old_all += old[1]
        new_right += new[0]
        new_all += new[1]
    return new_right / new_all - old_right / old_all

"""GRPO's advantages: each rollout's reward relative to its group's. Imports no torch.

Axis: G rollouts of one group.
"""

from collections.abc import Sequence
from math import sqrt

STD_EPSILON = 0.05
"""Added to the standard deviation, so that nearly equal rewards do not give huge advantages."""


def group_advantages(rewards_G: Sequence[float], *, divide_by_std: bool = False) -> list[float]:
    """Each reward minus the group's mean, as in Dr. GRPO (arXiv 2503.20783).

    With `divide_by_std` also divided by (population standard deviation + `STD_EPSILON`), as in
    DeepSeekMath's GRPO (arXiv 2402.03300) with another epsilon.
    """
    if not rewards_G:
        return []
    mean = sum(rewards_G) / len(rewards_G)
    centered_G = [reward - mean for reward in rewards_G]
    if not divide_by_std:
        return centered_G
    std = sqrt(sum(value * value for value in centered_G) / len(rewards_G))
    return [value / (std + STD_EPSILON) for value in centered_G]


def has_signal(rewards_G: Sequence[float]) -> bool:
    """Whether rewards differ within the group; otherwise every advantage is 0."""
    return len(set(rewards_G)) > 1

"""GRPO's advantages: how much better a rollout did than its group. Pure numbers, no torch.

Axis: G rollouts of one group.
"""

from collections.abc import Sequence
from math import sqrt

STD_EPSILON = 0.05
"""Added to the standard deviation, so that a group of nearly one reward is not blown up."""


def group_advantages(rewards_G: Sequence[float], *, divide_by_std: bool = False) -> list[float]:
    """Each reward minus its group's mean.

    If asked divided by (population standard deviation + `STD_EPSILON`).

    Dr. GRPO (arXiv 2503.20783) is the first, DeepSeekMath's GRPO (arXiv 2402.03300) the second with
    another epsilon. An empty group has none.
    """
    if not rewards_G:
        return []
    mean = sum(rewards_G) / len(rewards_G)
    centred_G = [reward - mean for reward in rewards_G]
    if not divide_by_std:
        return centred_G
    std = sqrt(sum(value * value for value in centred_G) / len(rewards_G))
    return [value / (std + STD_EPSILON) for value in centred_G]


def has_signal(rewards_G: Sequence[float]) -> bool:
    """Whether the group teaches anything: not all rewards are the same."""
    return len(set(rewards_G)) > 1

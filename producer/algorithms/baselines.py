"""Baselines of REINFORCE: what is taken off the rewards, so that they vary less. Imports no torch.

Neither changes the expected gradient much: the moving average is made of earlier steps alone; the
group's mean contains the rollout itself, as in Dr. GRPO, which makes it smaller by 1 - 1/G.

Axes: B rollouts of one step, G rollouts of one group.
"""

from statistics import fmean
from typing import assert_never

from producer.algorithms.advantages import Rewards
from producer.algorithms.names import BaselineName


def baselines(rewards: Rewards, name: BaselineName, moving: float) -> list[float]:
    """What is taken off each reward, in the order of the rollouts.

    `moving`: the average of earlier steps' rewards (`moved`).
    """
    match name:
        case "none":
            return [0.0] * len(rewards.rewards_B)
        case "moving":
            return [moving] * len(rewards.rewards_B)
        case "group":
            means = {
                group: fmean(rewards.rewards_B[at] for at in places)
                for group, places in rewards.by_group().items()
            }
            return [means[group] for group in rewards.groups_B]
        case _:
            assert_never(name)


def moved(average: float, rewards: list[float], momentum: float) -> float:
    """The moving average after a step with these rewards; as it was without any.

    It begins at 0, the baseline of the first step.
    """
    if not rewards:
        return average
    return momentum * average + (1 - momentum) * fmean(rewards)

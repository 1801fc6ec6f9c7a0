"""Rewards: from the outcome of an episode to a number. By name, or a function of the user's."""

from producer.rewards.named import REWARDS, Outcome, Reward, outcome_of, score
from producer.rewards.user_code import LIMIT_S, RewardError
from producer.rewards.user_module import custom_reward

__all__ = [
    "LIMIT_S",
    "REWARDS",
    "Outcome",
    "Reward",
    "RewardError",
    "find_reward",
    "outcome_of",
    "score",
]


def find_reward(name: str, limit_s: float = LIMIT_S) -> Reward:
    """The reward of this name, or the function at `package.module:function`. ValueError.

    `limit_s`: of a call of such a function.
    """
    return custom_reward(name, limit_s) if ":" in name else REWARDS[name]

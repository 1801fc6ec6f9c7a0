"""Rewards turn the outcome of an episode into a number, by name or by a user's function."""

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
    """The reward of this name, or the function at `package.module:function`. Raises ValueError.

    `limit_s` is the time limit for one call of such a function.
    """
    return custom_reward(name, limit_s) if ":" in name else REWARDS[name]

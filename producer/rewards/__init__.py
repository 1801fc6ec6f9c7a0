"""Rewards: from the outcome of an episode to a number. By name, or a function of the user's."""

from producer.rewards.custom import custom_reward, source_sha256
from producer.rewards.named import REWARDS
from producer.rewards.outcome import Outcome, Reward, score
from producer.rewards.user_code import LIMIT_S, RewardError

__all__ = [
    "LIMIT_S",
    "REWARDS",
    "Outcome",
    "Reward",
    "RewardError",
    "custom_reward",
    "find_reward",
    "score",
    "source_sha256",
]


def find_reward(name: str, limit_s: float = LIMIT_S) -> Reward:
    """The reward of this name, or the function at `package.module:function`. ValueError.

    `limit_s`: of a call of such a function.
    """
    return custom_reward(name, limit_s) if ":" in name else REWARDS[name]

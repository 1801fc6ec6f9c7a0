"""Rewards: from the outcome of an episode to a number. By name, or a function of the user's."""

from producer.rewards.custom import custom_reward, source_sha256
from producer.rewards.named import REWARDS
from producer.rewards.outcome import Outcome, Reward, RewardError, score

__all__ = [
    "REWARDS",
    "Outcome",
    "Reward",
    "RewardError",
    "custom_reward",
    "find_reward",
    "score",
    "source_sha256",
]


def find_reward(name: str) -> Reward:
    """The reward of this name, or the function at `package.module:function`. ValueError."""
    return custom_reward(name) if ":" in name else REWARDS[name]

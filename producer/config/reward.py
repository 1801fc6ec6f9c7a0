"""The field `reward`: a name or a function of the user's, found before anything is recorded."""

from typing import Protocol

from producer.agents import AGENTS
from producer.errors import did_you_mean
from producer.rewards import LIMIT_S, REWARDS, Reward, find_reward, source_sha256

AGENT_REWARDS = {name: make for agent in AGENTS.values() for name, make in agent.rewards.items()}
"""Name -> reward of one agent, which has settings of its own."""
REWARD_NAMES = (*REWARDS, *AGENT_REWARDS)


def check_reward_name(name: str) -> str:
    """`name` if there is such a reward. ValueError."""
    if name in REWARD_NAMES or ":" in name:
        named_reward(name)
        return name
    message = (
        f"{name!r} is not one of {', '.join(REWARD_NAMES)}, nor package.module:function"
        f"{did_you_mean(name, REWARD_NAMES).replace(' ', '. ', 1)}"
    )
    raise ValueError(message)


def named_reward(name: str, limit_s: float = LIMIT_S) -> Reward:
    """The reward of this name with its default settings. ValueError.

    `limit_s`: of a call of a function of the user's.
    """
    return AGENT_REWARDS[name](None) if name in AGENT_REWARDS else find_reward(name, limit_s)


class RewardFields(Protocol):
    """The fields of the configuration that decide the reward."""

    @property
    def reward(self) -> str:
        """A name or package.module:function."""

    @property
    def reward_correct(self) -> float:
        """Of a session."""

    @property
    def reward_incorrect(self) -> float:
        """Of a session."""

    @property
    def reward_timeout(self) -> float:
        """Of a session."""

    @property
    def max_turn_time_seconds(self) -> float:
        """Limit of a call of a function of the user's."""


def configured_reward(config: RewardFields) -> Reward:
    """The reward of a run. ValueError."""
    if (make := AGENT_REWARDS.get(config.reward)) is not None:
        return make(config)
    return named_reward(config.reward, config.max_turn_time_seconds)


def checked_sha256(name: str, expected: str | None) -> str | None:
    """The hash to record: of the file that holds the function, None for a reward by name.

    ValueError when it is not the expected one.
    """
    if ":" not in name:
        if expected is not None:
            message = f"reward_sha256: has no effect on the reward {name}; omit it"
            raise ValueError(message)
        return None
    found = source_sha256(name)
    if expected not in {None, found}:
        message = (
            f"reward_sha256: the file of {name} has changed, from sha256 {expected} to {found};"
            " restore it, or begin a new training"
        )
        raise ValueError(message)
    return found

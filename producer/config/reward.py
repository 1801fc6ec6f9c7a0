"""The field `reward`: a name or a function of the user's, found before anything is recorded."""

from functools import partial
from typing import Protocol

from producer.errors import did_you_mean
from producer.rewards import REWARDS, Reward, dbbench, find_reward, source_sha256


def check_reward_name(name: str) -> str:
    """`name` if there is such a reward. ValueError."""
    if name in REWARDS or ":" in name:
        find_reward(name)
        return name
    message = (
        f"{name!r} is not one of {', '.join(REWARDS)}, nor package.module:function"
        f"{did_you_mean(name, REWARDS).replace(' ', '. ', 1)}"
    )
    raise ValueError(message)


class RewardFields(Protocol):
    """The fields of the configuration that decide the reward."""

    @property
    def reward(self) -> str:
        """A name or package.module:function."""

    @property
    def reward_correct(self) -> float:
        """Of `dbbench`."""

    @property
    def reward_incorrect(self) -> float:
        """Of `dbbench`."""

    @property
    def reward_timeout(self) -> float:
        """Of `dbbench`."""

    @property
    def max_turn_time_seconds(self) -> float:
        """Limit of a call of a function of the user's."""


def configured_reward(config: RewardFields) -> Reward:
    """The reward of a run. ValueError."""
    if config.reward != "dbbench":
        return find_reward(config.reward, config.max_turn_time_seconds)
    return partial(
        dbbench,
        correct=config.reward_correct,
        incorrect=config.reward_incorrect,
        timeout=config.reward_timeout,
    )


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

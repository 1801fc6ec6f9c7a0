"""The field `reward`: a name, or the user's own function, loaded before anything is recorded."""

from producer.agents import AGENTS
from producer.process_rewards.user_module import load_user_module
from producer.rewards import LIMIT_S, REWARDS, Reward, find_reward
from producer.rewards.user_module import load_module, source_sha256
from schemas.advice import did_you_mean

AGENT_REWARDS = {name: make for agent in AGENTS.values() for name, make in agent.rewards.items()}
"""Name -> reward of one agent, with its own settings."""
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

    `limit_s`: time limit of a call of the user's function.
    """
    return AGENT_REWARDS[name](None) if name in AGENT_REWARDS else find_reward(name, limit_s)


def checked_sha256(name: str, expected: str | None) -> str | None:
    """The hash of the function's file, None for a built-in reward. ValueError if it has changed."""
    if ":" not in name:
        if expected is not None:
            message = f"reward_sha256: has no effect on the reward {name}; omit it"
            raise ValueError(message)
        return None
    found = source_sha256(load_module(name.partition(":")[0]))
    return same_sha256("reward", f"the file of {name}", found, expected)


def same_sha256(field: str, file: str, found: str, expected: str | None) -> str:
    """`found`. ValueError if another hash is expected; None: none is."""
    if expected not in {None, found}:
        message = (
            f"{field}_sha256: {file} has changed, from sha256 {expected} to {found}; restore it, or"
            " begin a new training"
        )
        raise ValueError(message)
    return found


def module_hash(field: str, name: str | None, expected: str | None) -> str | None:
    """The hash of a user's module, None without one. ValueError if it has changed."""
    if name is None:
        return None
    try:
        found = source_sha256(load_user_module(name))
    except ValueError as error:
        message = f"{field}: {error}"
        raise ValueError(message) from error
    return same_sha256(field, name, found, expected)

"""The field `reward`: a name or a function of the user's, found before anything is recorded."""

from producer.errors import did_you_mean
from producer.rewards import REWARDS, find_reward, source_sha256


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

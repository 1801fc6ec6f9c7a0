"""Controls: rewards without information about the rollout, or with its opposite. Imports no torch.

A training that improves with `shuffled_rewards` or `ignored_rewards` does not learn from its
rewards, and neither does one that gets no worse with `wrong_sign`.
"""

import random
from collections.abc import Sequence
from typing import Final, NamedTuple, get_args

from producer.algorithms.names import ControlName


class Judged(NamedTuple):
    """The judgement from which advantages are computed."""

    reward: float
    is_right: bool
    """Whether the rollout solved its task; only the advantage `rejection` reads it."""


def controlled(control: ControlName, true_B: Sequence[Judged], *, seed: int) -> list[Judged]:
    """Apply a control to a step's rollouts; `seed` determines the permutation over all groups."""
    match control:
        case "none":
            return list(true_B)
        case "shuffled_rewards":
            return random.Random(seed).sample(true_B, len(true_B))  # noqa: S311  # order
        case "ignored_rewards":
            return [Judged(1.0, is_right=True)] * len(true_B)
        case "wrong_sign":
            return [one._replace(reward=-one.reward) for one in true_B]


BLANK_SCREENS: Final = "blank_screens"
"""The control that has its own setting: `ablate`, which hides the screens."""
REWARD_CONTROLS: Final[tuple[ControlName, ...]] = tuple(
    name for name in get_args(ControlName) if name != "none"
)
CONTROL_TEXTS: Final = {
    "shuffled_rewards": "advantages use rewards permuted over the step's rollouts",
    "ignored_rewards": "advantages treat every rollout as right",
    "wrong_sign": "advantages use negated rewards",
    BLANK_SCREENS: "the policy sees blank screenshots",
}

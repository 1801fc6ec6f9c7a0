"""Controls: rewards that tell nothing, or the opposite, of what a rollout did. Imports no torch.

A training that improves with `shuffled_rewards` does not learn from its rewards; one that does not
get worse with `wrong_sign` does not learn from them either.
"""

import random
from collections.abc import Sequence
from typing import Final

from producer.algorithms.names import ControlName


def controlled_rewards(
    control: ControlName, rewards_B: Sequence[float], *, seed: int
) -> list[float]:
    """`rewards_B` of a step's rollouts, permuted by the seed over all groups, or negated."""
    match control:
        case "none":
            return list(rewards_B)
        case "shuffled_rewards":
            return random.Random(seed).sample(rewards_B, len(rewards_B))  # noqa: S311  # order
        case "wrong_sign":
            return [-reward for reward in rewards_B]


CONTROL_TEXTS: Final[dict[ControlName, str]] = {
    "shuffled_rewards": "advantages are of rewards permuted over the step's rollouts",
    "wrong_sign": "advantages are of negated rewards",
}

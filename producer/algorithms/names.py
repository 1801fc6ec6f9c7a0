"""Names of algorithms as used in the configuration. Imports no torch.

The functions are in explicit dicts: `advantages.ADVANTAGES`, `losses.LOSSES`,
`losses.AGGREGATIONS` and `losses.KL_ESTIMATORS`. For formulas and sources see docs/algorithms.md
and docs/losses.md.
"""

from typing import Literal

AdvantageName = Literal[
    "mean_centered",
    "reinforce",
    "grpo",
    "dr_grpo",
    "rloo",
    "reinforce_plus_plus",
    "reinforce_plus_plus_baseline",
    "remax",
    "opo",
    "gpg",
    "grpo_passk",
    "grpo_passk_no_std",
    "gae",
    "prime",
    "rejection",
]
ControlName = Literal["none", "shuffled_rewards", "ignored_rewards", "wrong_sign"]
LossName = Literal["importance_sampling", "reinforce", "ppo", "cispo", "gspo"]
AggregationName = Literal["sum", "token_mean", "sequence_mean", "sequence_sum"]
BaselineName = Literal["none", "moving", "group"]
KlName = Literal["k1", "abs", "k2", "k3"]
KlPlace = Literal["advantage", "loss"]

PER_SEQUENCE = frozenset({"gspo", "sequence_mean", "sequence_sum"})
"""Losses and aggregations that need one row per sequence; others take all tokens as one row."""

CLIPPED: dict[LossName, tuple[float, float]] = {
    "ppo": (0.2, 0.2),
    "cispo": (0.2, 0.2),
    "gspo": (3e-4, 4e-4),
}
"""Losses that clip the probability ratio, with the default distances of the lower and upper bound
from 1: tinker's for ppo and cispo, the paper's for gspo, whose ratio is a mean over a sequence."""

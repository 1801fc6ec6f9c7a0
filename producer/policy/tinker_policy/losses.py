"""The losses that Tinker trains with, computed from what its answers have: log-probs, no metric.

Servers of its protocol name the loss differently or leave it out. Formulas as in
`producer.algorithms.losses`, without torch; sources: docs/losses.md. Axis: N completion tokens of a
sequence.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from producer.algorithms.names import CLIPPED, LossName
from producer.algorithms.settings import UpdateSettings

Numbers = NDArray[np.float64]
MAX_LOG_RATIO: Final = 20.0
"""As `producer.algorithms.losses` cuts log ratios."""


def clip_bounds(settings: UpdateSettings) -> tuple[float, float] | None:
    """Bounds of the probability ratio new / old; None for a loss that does not clip."""
    if settings.loss_fn not in CLIPPED:
        return None
    low, high = CLIPPED[settings.loss_fn]
    low = low if settings.clip_ratio_low is None else settings.clip_ratio_low
    high = high if settings.clip_ratio_high is None else settings.clip_ratio_high
    return 1 - low, 1 + high


def policy_loss(
    settings: UpdateSettings, logprobs_N: Numbers, sampled_N: Numbers, advantages_N: Numbers
) -> float:
    """The sum over tokens; infinite or NaN where a number is. KeyError for another loss."""
    with np.errstate(over="ignore", invalid="ignore"):
        loss_N = _LOSSES[settings.loss_fn](
            logprobs_N, sampled_N, advantages_N, clip_bounds(settings) or (0.0, np.inf)
        )
        return float(loss_N.sum())


def _importance_sampling(
    logprobs_N: Numbers, sampled_N: Numbers, advantages_N: Numbers, _bounds: tuple[float, float]
) -> Numbers:
    return -np.exp(logprobs_N - sampled_N) * advantages_N


def _ppo(
    logprobs_N: Numbers, sampled_N: Numbers, advantages_N: Numbers, bounds: tuple[float, float]
) -> Numbers:
    ratio_N = _ratio(logprobs_N, sampled_N)
    return -np.minimum(ratio_N * advantages_N, ratio_N.clip(*bounds) * advantages_N)


def _cispo(
    logprobs_N: Numbers, sampled_N: Numbers, advantages_N: Numbers, bounds: tuple[float, float]
) -> Numbers:
    return -_ratio(logprobs_N, sampled_N).clip(*bounds) * logprobs_N * advantages_N


def _ratio(logprobs_N: Numbers, sampled_N: Numbers) -> Numbers:
    ratio_N: Numbers = np.exp((logprobs_N - sampled_N).clip(-MAX_LOG_RATIO, MAX_LOG_RATIO))
    return ratio_N


_LOSSES: Final[
    dict[LossName, Callable[[Numbers, Numbers, Numbers, tuple[float, float]], Numbers]]
] = {"importance_sampling": _importance_sampling, "ppo": _ppo, "cispo": _cispo}

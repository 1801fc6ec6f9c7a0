"""The losses Tinker trains with, computed from the log-probs in its answers, not from its metrics.

Servers of its protocol name the loss differently or omit it. Formulas as in
`producer.algorithms.losses`, without torch; sources: docs/losses.md. Axis: N completion tokens of
a sequence.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from producer.algorithms.names import LossName
from producer.algorithms.ratio_bounds import MAX_LOG_RATIO, Clip, clip_of
from producer.algorithms.settings import UpdateSettings

Numbers = NDArray[np.float64]


def policy_loss(
    settings: UpdateSettings, logprobs_N: Numbers, sampled_N: Numbers, advantages_N: Numbers
) -> float:
    """The sum over tokens; not finite if an input is not. Raises KeyError for another loss."""
    with np.errstate(over="ignore", invalid="ignore"):
        loss = _LOSSES[settings.loss_fn]
        loss_N = loss(logprobs_N, sampled_N, advantages_N, clip_of(settings))
        return float(loss_N.sum())


def _importance_sampling(
    logprobs_N: Numbers, sampled_N: Numbers, advantages_N: Numbers, _clip: Clip
) -> Numbers:
    return -np.exp(logprobs_N - sampled_N) * advantages_N


def _ppo(logprobs_N: Numbers, sampled_N: Numbers, advantages_N: Numbers, clip: Clip) -> Numbers:
    ratio_N = _ratio(logprobs_N, sampled_N)
    return -np.minimum(
        ratio_N * advantages_N, ratio_N.clip(1 - clip.low, 1 + clip.high) * advantages_N
    )


def _cispo(logprobs_N: Numbers, sampled_N: Numbers, advantages_N: Numbers, clip: Clip) -> Numbers:
    return (
        -_ratio(logprobs_N, sampled_N).clip(1 - clip.low, 1 + clip.high) * logprobs_N * advantages_N
    )


def _ratio(logprobs_N: Numbers, sampled_N: Numbers) -> Numbers:
    ratio_N: Numbers = np.exp((logprobs_N - sampled_N).clip(-MAX_LOG_RATIO, MAX_LOG_RATIO))
    return ratio_N


_LOSSES: Final[dict[LossName, Callable[[Numbers, Numbers, Numbers, Clip], Numbers]]] = {
    "importance_sampling": _importance_sampling,
    "ppo": _ppo,
    "cispo": _cispo,
}

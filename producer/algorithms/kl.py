"""KL divergences between policies, estimated on sampled tokens.

Axis: N completion tokens, in any shape; log-probs in nats. Formulas: docs/losses.md.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import torch
from torch import Tensor

from producer.algorithms.names import KlName

MAX_LOG_RATIO: Final = 20.0
MAX_K3: Final = 10.0
"""Bounds of k3's log ratio and of its value, as in verl."""

KlEstimator = Callable[[Tensor, Tensor], Tensor]
"""(logprobs_N, reference_logprobs_N) -> KL(policy || reference) per token."""


class KlEstimates(NamedTuple):
    """KL(sampled || trained) on sampled tokens (Schulman, Approximating KL Divergence, 2020)."""

    v1: float
    """Mean log ratio: unbiased, may be negative."""
    v2: float
    """Half the mean squared log ratio: biased, low variance, never negative."""


def k1(logprobs_N: Tensor, reference_N: Tensor) -> Tensor:
    """Log ratio, log p - log q: unbiased, may be negative. As a loss its expected gradient is 0."""
    return logprobs_N - reference_N


def absolute(logprobs_N: Tensor, reference_N: Tensor) -> Tensor:
    """|log p - log q|: a distance, no estimate of the KL divergence."""
    return (logprobs_N - reference_N).abs()


def k2(logprobs_N: Tensor, reference_N: Tensor) -> Tensor:
    """(log p - log q)² / 2: biased, never negative; as a loss it has the KL's gradient."""
    return 0.5 * (logprobs_N - reference_N).square()


def k3(logprobs_N: Tensor, reference_N: Tensor) -> Tensor:
    """Ratio q / p - log(q / p) - 1: unbiased and never negative."""
    log_ratio_N = (reference_N - logprobs_N).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    return (torch.exp(log_ratio_N) - log_ratio_N - 1).clamp(-MAX_K3, MAX_K3)


KL_ESTIMATORS: Final[dict[KlName, KlEstimator]] = {"k1": k1, "abs": absolute, "k2": k2, "k3": k3}


def kl_sample_train(sampled_logprobs_N: Tensor, trained_logprobs_N: Tensor) -> KlEstimates:
    """Divergence of the trained policy from the one that sampled; NaN without tokens."""
    log_ratio_N = sampled_logprobs_N - trained_logprobs_N
    return KlEstimates(float(log_ratio_N.mean()), float(0.5 * log_ratio_N.square().mean()))


def kl_penalized(advantages_N: Tensor, kl_N: Tensor, coef: float) -> Tensor:
    """Advantages with tinker-cookbook's KL penalty: A + coef * (mean(kl) - kl).

    It penalises tokens that diverged more than the batch's mean, and leaves the mean advantage
    unchanged. tinker-cookbook's `kl_N` is k1 of the sampling policy and the base policy.
    """
    return advantages_N + coef * (kl_N.mean() - kl_N)

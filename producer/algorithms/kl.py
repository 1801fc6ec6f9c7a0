"""KL divergences between policies, estimated on sampled tokens.

Axis: N completion tokens; log-probs in nats.
"""

from typing import NamedTuple

from torch import Tensor


class KlEstimates(NamedTuple):
    """KL(sampled || trained) on sampled tokens (Schulman, Approximating KL Divergence, 2020)."""

    v1: float
    """Mean log ratio: unbiased, may be negative."""
    v2: float
    """Half the mean squared log ratio: biased, low variance, never negative."""


def kl_sample_train(sampled_logprobs_N: Tensor, trained_logprobs_N: Tensor) -> KlEstimates:
    """Divergence of the trained policy from the one that sampled; NaN without tokens."""
    log_ratio_N = sampled_logprobs_N - trained_logprobs_N
    return KlEstimates(float(log_ratio_N.mean()), float(0.5 * log_ratio_N.square().mean()))


def kl_penalized(
    advantages_N: Tensor, sampled_logprobs_N: Tensor, base_logprobs_N: Tensor, coef: float
) -> Tensor:
    """Advantages with tinker-cookbook's KL penalty against the base policy.

    A + coef * (mean(d) - d) with d = log p_sampled - log p_base: it penalises tokens that diverged
    more than the batch's mean, and leaves the mean advantage unchanged.
    """
    log_ratio_N = sampled_logprobs_N - base_logprobs_N
    return advantages_N + coef * (log_ratio_N.mean() - log_ratio_N)

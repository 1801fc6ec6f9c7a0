"""Divergences between policies, estimated on sampled tokens.

Axis: N completion tokens; log-probs in nats.
"""

from typing import NamedTuple

from torch import Tensor


class KlEstimates(NamedTuple):
    """KL(sampled || trained) from tokens of the first (Schulman, Approximating KL divergence)."""

    v1: float
    """Mean log ratio: unbiased, may be negative."""
    v2: float
    """Half the mean squared log ratio: biased, low variance, never negative."""


def kl_sample_train(sampled_logprobs_N: Tensor, trained_logprobs_N: Tensor) -> KlEstimates:
    """How far the policy that is trained is from the one that sampled; NaN without tokens."""
    log_ratio_N = sampled_logprobs_N - trained_logprobs_N
    return KlEstimates(float(log_ratio_N.mean()), float(0.5 * log_ratio_N.square().mean()))


def kl_penalised(
    advantages_N: Tensor, sampled_logprobs_N: Tensor, base_logprobs_N: Tensor, coef: float
) -> Tensor:
    """Advantages with tinker-cookbook's KL penalty against the base policy.

    A + coef * (mean(d) - d) with d = log p_sampled - log p_base: tokens that drifted more than the
    batch's average are held back. The mean is over all tokens of the batch, so the penalty shifts
    no advantage on average.
    """
    drift_N = sampled_logprobs_N - base_logprobs_N
    return advantages_N + coef * (drift_N.mean() - drift_N)

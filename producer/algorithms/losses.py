"""Policy-gradient losses per completion token, their aggregation to a scalar, and KL divergences.

Axes: B sequences of one micro-batch, T tokens; N completion tokens in any shape. Log-probs are in
nats; `old` was recorded when the token was sampled. Masks: True on completion tokens; a loss's
other entries are ignored. Gradients flow only through `logprobs_BT`. Formulas and sources:
docs/losses.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import torch
from torch import Tensor

from producer.algorithms.names import AggregationName, KlName, LossName
from producer.algorithms.ratio_bounds import MAX_LOG_RATIO, Clip

MAX_SEQUENCE_LOG_RATIO: Final = 10.0
"""As `MAX_LOG_RATIO`, for gspo's sequence ratio; only an upper limit."""


TokenLoss = Callable[[Tensor, Tensor, Tensor, Tensor, Clip], Tensor]
"""(logprobs_BT, old_logprobs_BT, advantages_BT, mask_BT, clip) -> loss_BT, to be minimised."""


def importance_sampling(
    logprobs_BT: Tensor, old_BT: Tensor, advantages_BT: Tensor, _mask_BT: Tensor, _clip: Clip
) -> Tensor:
    """-ratio * A (tinker)."""
    return -(torch.exp(logprobs_BT - old_BT) * advantages_BT)


def reinforce(
    logprobs_BT: Tensor, _old_BT: Tensor, advantages_BT: Tensor, _mask_BT: Tensor, _clip: Clip
) -> Tensor:
    """-log p * A (Williams 1992); also the loss of GPG. Treats the batch as on-policy."""
    return -(logprobs_BT * advantages_BT)


def ppo(
    logprobs_BT: Tensor, old_BT: Tensor, advantages_BT: Tensor, _mask_BT: Tensor, clip: Clip
) -> Tensor:
    """-min(ratio * A, clip(ratio) * A) (arXiv 1707.06347).

    `high` above `low` is clip-higher (DAPO, arXiv 2503.14476). `dual` limits the loss to -dual * A
    where A is negative (arXiv 1912.09729).
    """
    ratio_BT = _ratio(logprobs_BT, old_BT)
    clipped_BT = ratio_BT.clamp(1 - clip.low, 1 + clip.high)
    loss_BT = -torch.minimum(ratio_BT * advantages_BT, clipped_BT * advantages_BT)
    if clip.dual is None:
        return loss_BT
    bounded_BT = torch.minimum(loss_BT, -clip.dual * advantages_BT)
    return torch.where(advantages_BT < 0, bounded_BT, loss_BT)


def cispo(
    logprobs_BT: Tensor, old_BT: Tensor, advantages_BT: Tensor, _mask_BT: Tensor, clip: Clip
) -> Tensor:
    """-stop_gradient(clip(ratio)) * log p * A (arXiv 2506.13585).

    Clipped tokens keep their gradient.
    """
    clipped_BT = _ratio(logprobs_BT, old_BT).clamp(1 - clip.low, 1 + clip.high)
    return -(clipped_BT.detach() * logprobs_BT * advantages_BT)


def gspo(
    logprobs_BT: Tensor, old_BT: Tensor, advantages_BT: Tensor, mask_BT: Tensor, clip: Clip
) -> Tensor:
    """PPO with one ratio per sequence, the geometric mean of its tokens' (arXiv 2507.18071).

    Each token gets its sequence's value and, as in verl, the gradient of its own log-prob.
    """
    log_ratio_BT = torch.where(mask_BT, logprobs_BT - old_BT, 0.0)
    mean_B = log_ratio_BT.sum(dim=-1) / mask_BT.sum(dim=-1).clamp(min=1)
    log_ratio_BT = logprobs_BT - logprobs_BT.detach() + mean_B.detach()[:, None]
    ratio_BT = torch.exp(log_ratio_BT.clamp(max=MAX_SEQUENCE_LOG_RATIO))
    clipped_BT = ratio_BT.clamp(1 - clip.low, 1 + clip.high)
    return -torch.minimum(ratio_BT * advantages_BT, clipped_BT * advantages_BT)


LOSSES: Final[dict[LossName, TokenLoss]] = {
    "importance_sampling": importance_sampling,
    "reinforce": reinforce,
    "ppo": ppo,
    "cispo": cispo,
    "gspo": gspo,
}


def truncated_weights(learner_BT: Tensor, sampled_BT: Tensor, cap: float) -> Tensor:
    """min(cap, exp(learner - sampled)) per token, without a gradient, to multiply a loss with.

    `learner`: log-probs before the update. As in verl and TRL (truncated importance sampling).
    """
    return _ratio(learner_BT, sampled_BT).clamp(max=cap).detach()


def value_loss(
    values_BT: Tensor, old_values_BT: Tensor, returns_BT: Tensor, *, clip: float
) -> Tensor:
    """[B, T]: half the larger of a value head's squared error and its clipped error (PPO)."""
    clipped_BT = values_BT.clamp(old_values_BT - clip, old_values_BT + clip)
    errors_BT = torch.maximum((values_BT - returns_BT).square(), (clipped_BT - returns_BT).square())
    return 0.5 * errors_BT


def _ratio(logprobs_BT: Tensor, old_BT: Tensor) -> Tensor:
    return torch.exp((logprobs_BT - old_BT).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO))


@dataclass(frozen=True, slots=True)
class BatchSize:
    """Size of the whole optimiser step, so that micro-batches add up to the same number."""

    num_tokens: int
    """Number of completion tokens."""
    num_sequences: int
    """Number of sequences with at least one completion token."""


Aggregation = Callable[[Tensor, Tensor, BatchSize], Tensor]
"""(loss_BT, mask_BT, size of the step) -> this micro-batch's share, a scalar."""


def token_sum(loss_BT: Tensor, mask_BT: Tensor, _size: BatchSize) -> Tensor:
    """Sum over tokens (tinker-cookbook): the learning rate scales with the batch."""
    return loss_BT[mask_BT].sum()


def token_mean(loss_BT: Tensor, mask_BT: Tensor, size: BatchSize) -> Tensor:
    """Mean over all tokens (DAPO): long sequences weigh more."""
    return loss_BT[mask_BT].sum() / max(1, size.num_tokens)


def sequence_mean(loss_BT: Tensor, mask_BT: Tensor, size: BatchSize) -> Tensor:
    """Mean over sequences of their mean over tokens (GRPO): every sequence weighs the same."""
    mean_B = _token_sums(loss_BT, mask_BT) / mask_BT.sum(dim=-1).clamp(min=1)
    return mean_B.sum() / max(1, size.num_sequences)


def sequence_sum(loss_BT: Tensor, mask_BT: Tensor, size: BatchSize) -> Tensor:
    """Mean over sequences of their sum over tokens (Dr. GRPO, except for its constant length)."""
    return _token_sums(loss_BT, mask_BT).sum() / max(1, size.num_sequences)


AGGREGATIONS: Final[dict[AggregationName, Aggregation]] = {
    "sum": token_sum,
    "token_mean": token_mean,
    "sequence_mean": sequence_mean,
    "sequence_sum": sequence_sum,
}


def _token_sums(loss_BT: Tensor, mask_BT: Tensor) -> Tensor:
    return loss_BT.masked_fill(~mask_BT, 0.0).sum(dim=-1)


MAX_K3: Final = 10.0
"""Limit of k3's value, as in verl."""

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
    """|log p - log q|: a distance, not an estimate of the KL divergence."""
    return (logprobs_N - reference_N).abs()


def k2(logprobs_N: Tensor, reference_N: Tensor) -> Tensor:
    """(log p - log q)² / 2: biased, never negative; as a loss it has the KL's gradient."""
    return 0.5 * (logprobs_N - reference_N).square()


def k3(logprobs_N: Tensor, reference_N: Tensor) -> Tensor:
    """Ratio q / p - log(q / p) - 1: never negative, and unbiased where nothing is clamped."""
    log_ratio_N = (reference_N - logprobs_N).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    return (torch.exp(log_ratio_N) - log_ratio_N - 1).clamp(-MAX_K3, MAX_K3)


KL_ESTIMATORS: Final[dict[KlName, KlEstimator]] = {"k1": k1, "abs": absolute, "k2": k2, "k3": k3}


def kl_sample_train(sampled_logprobs_N: Tensor, trained_logprobs_N: Tensor) -> KlEstimates:
    """Divergence of the trained policy from the sampling policy; NaN without tokens."""
    log_ratio_N = sampled_logprobs_N - trained_logprobs_N
    return KlEstimates(float(log_ratio_N.mean()), float(0.5 * log_ratio_N.square().mean()))


def kl_penalized(advantages_N: Tensor, kl_N: Tensor, coef: float) -> Tensor:
    """Advantages with tinker-cookbook's KL penalty: A + coef * (mean(kl) - kl).

    It penalises tokens that diverged more than the batch's mean, and leaves the mean advantage
    unchanged. tinker-cookbook's `kl_N` is k1 of the sampling policy and the base policy.
    """
    return advantages_N + coef * (kl_N.mean() - kl_N)

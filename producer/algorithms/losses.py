"""Policy-gradient losses per completion token; `aggregation` makes a scalar of them.

Axes: B sequences, T tokens. Log-probs in nats; `old` is the one recorded when the token was
sampled. Masks: True on completion tokens; what a loss has elsewhere is not read. Gradients flow
through `logprobs_BT` alone. Formulas and sources: docs/losses.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from producer.algorithms.names import CLIPPED, LossName
from producer.algorithms.settings import LossSettings

MAX_LOG_RATIO: Final = 20.0
"""Log ratios are cut here before the exponential by losses that clip, as in verl."""
MAX_SEQUENCE_LOG_RATIO: Final = 10.0
"""The same for gspo, from above only."""


@dataclass(frozen=True, slots=True)
class Clip:
    """Bounds of the probability ratio new / old."""

    low: float = 0.2
    """The lower bound is 1 - low."""
    high: float = 0.2
    """The upper bound is 1 + high."""
    dual: float | None = None
    """ppo: upper bound of the ratio where the advantage is negative; None: none."""


def clip_of(settings: LossSettings) -> Clip:
    """The bounds as set; one that is not is the loss's own."""
    low, high = CLIPPED.get(settings.loss_fn, (0.0, 0.0))
    return Clip(
        low if settings.clip_ratio_low is None else settings.clip_ratio_low,
        high if settings.clip_ratio_high is None else settings.clip_ratio_high,
        settings.dual_clip,
    )


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
    """-log p * A (Williams 1992); also the loss of GPG. Takes the batch for on-policy."""
    return -(logprobs_BT * advantages_BT)


def ppo(
    logprobs_BT: Tensor, old_BT: Tensor, advantages_BT: Tensor, _mask_BT: Tensor, clip: Clip
) -> Tensor:
    """-min(ratio * A, clip(ratio) * A) (arXiv 1707.06347).

    `high` above `low` is clip-higher (DAPO, arXiv 2503.14476). With `dual` at most -dual * A where
    A is negative (arXiv 1912.09729).
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

    Tokens that are clipped keep their gradient.
    """
    clipped_BT = _ratio(logprobs_BT, old_BT).clamp(1 - clip.low, 1 + clip.high)
    return -(clipped_BT.detach() * logprobs_BT * advantages_BT)


def gspo(
    logprobs_BT: Tensor, old_BT: Tensor, advantages_BT: Tensor, mask_BT: Tensor, clip: Clip
) -> Tensor:
    """PPO with one ratio per sequence, the geometric mean of its tokens' (arXiv 2507.18071).

    Each token has the value of its sequence and, as in verl, the gradient of its own log-prob.
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


def value_loss(
    values_BT: Tensor, old_values_BT: Tensor, returns_BT: Tensor, *, clip: float
) -> Tensor:
    """[B, T]: PPO's clipped squared error of a value head, half of the larger of the two."""
    clipped_BT = values_BT.clamp(old_values_BT - clip, old_values_BT + clip)
    errors_BT = torch.maximum((values_BT - returns_BT).square(), (clipped_BT - returns_BT).square())
    return 0.5 * errors_BT


def _ratio(logprobs_BT: Tensor, old_BT: Tensor) -> Tensor:
    return torch.exp((logprobs_BT - old_BT).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO))

"""From a loss per token to one number, over all micro-batches of an optimiser step.

Axes: B sequences of one micro-batch, T tokens. Masks: True on completion tokens.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from torch import Tensor

from producer.algorithms.names import AggregationName


@dataclass(frozen=True, slots=True)
class BatchSize:
    """Of the whole optimiser step, so that micro-batches add up to the same number."""

    num_tokens: int
    """Completion tokens."""
    num_sequences: int
    """With at least one completion token."""


UNDIVIDED: Final = BatchSize(1, 1)
"""With this size an aggregation is the sum that `divisor` of the whole step divides."""


def divisor(name: AggregationName, size: BatchSize) -> int:
    """What the aggregation divides the step's sum by, for a size that is known only later."""
    match name:
        case "sum":
            return 1
        case "token_mean":
            return max(1, size.num_tokens)
        case "sequence_mean" | "sequence_sum":
            return max(1, size.num_sequences)


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
    """Mean over sequences of their sum over tokens (Dr. GRPO, but for its constant length)."""
    return _token_sums(loss_BT, mask_BT).sum() / max(1, size.num_sequences)


AGGREGATIONS: Final[dict[AggregationName, Aggregation]] = {
    "sum": token_sum,
    "token_mean": token_mean,
    "sequence_mean": sequence_mean,
    "sequence_sum": sequence_sum,
}


def _token_sums(loss_BT: Tensor, mask_BT: Tensor) -> Tensor:
    return loss_BT.masked_fill(~mask_BT, 0.0).sum(dim=-1)

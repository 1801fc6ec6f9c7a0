"""Random batches in which ratios lie far on both sides of every clipping bound."""

from dataclasses import dataclass

import torch
from torch import Tensor

SEEDS = range(8)


@dataclass(frozen=True, slots=True)
class Batch:
    """Axes: B sequences, T tokens; masks of different lengths with holes, as observations leave."""

    logprobs_BT: Tensor
    old_BT: Tensor
    reference_BT: Tensor
    advantages_B: Tensor
    mask_BT: Tensor

    @property
    def advantages_BT(self) -> Tensor:
        return self.advantages_B[:, None].expand_as(self.mask_BT)


def random_batch(seed: int, *, spread: float = 1.0) -> Batch:
    """`spread`: standard deviation of the log ratios, nats."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    num_rows, num_tokens = 10, 12
    old_BT = -normal(num_rows, num_tokens).abs() - 2.0
    lengths_B = torch.randint(4, num_tokens + 1, (num_rows,), generator=generator)
    mask_BT = torch.arange(num_tokens) < lengths_B[:, None]
    mask_BT[:, 1] = torch.rand(num_rows, generator=generator) < 0.5
    return Batch(
        logprobs_BT=(old_BT + spread * normal(num_rows, num_tokens)).requires_grad_(),
        old_BT=old_BT,
        reference_BT=old_BT + spread * normal(num_rows, num_tokens),
        advantages_B=normal(num_rows),
        mask_BT=mask_BT,
    )

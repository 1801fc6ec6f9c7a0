"""Computes a batch's gradient over micro-batches; optimisers: AdamW, or Muon for matrices."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from producer.policy.sequences import split_evenly
from producer.policy.torch_policy.cpu_parallel import add_gradients, parallel_map
from producer.policy.torch_policy.seeded_dropout import dropout_drawn_from
from producer.seeds import derived_seed

MAX_GRADIENT_NORM: Final = 1.0
MicroBatch = TypeVar("MicroBatch")


class BatchGradient(NamedTuple):
    """Results of a batch; the gradients themselves are in the parameters."""

    loss: float
    """Loss summed over micro-batches."""
    norm: float
    """Global L2 norm before clipping."""


def set_learning_rate(optimizer: torch.optim.Optimizer, learning_rate: float) -> None:
    """Set the learning rate of every parameter group."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate


def accumulate_gradients(
    loss_of: Callable[[MicroBatch], Tensor],
    micro_batches: Sequence[MicroBatch],
    parameters: Sequence[nn.Parameter],
    *,
    max_norm: float = MAX_GRADIENT_NORM,
    dropout_seed: int | None = None,
) -> BatchGradient:
    """Add the clipped gradients of the summed losses to the parameters' `.grad`.

    Micro-batches run in parallel and are added in order, so the result has the same bits on any
    number of cores. `dropout_seed` None disables dropout.
    """

    def backward(numbered: tuple[int, MicroBatch]) -> tuple[float, tuple[Tensor | None, ...]]:
        number, micro_batch = numbered
        seed = None if dropout_seed is None else derived_seed(dropout_seed, number)
        with dropout_drawn_from(seed):
            loss = loss_of(micro_batch)
            return float(loss.detach()), torch.autograd.grad(loss, parameters, allow_unused=True)

    total = 0.0
    device = parameters[0].device
    for loss, gradients in parallel_map(backward, list(enumerate(micro_batches)), device):
        add_gradients(parameters, gradients)
        total += loss
    return BatchGradient(total, float(torch.nn.utils.clip_grad_norm_(parameters, max_norm)))


NUM_MUON_SHARDS: Final = 4
"""Number of shards with similar numbers of matrices; they step in parallel."""
MATRIX_NDIM: Final = 2


@dataclass(frozen=True, slots=True)
class RatedOptimizer:
    """An optimiser and its peak learning rate."""

    optimizer: torch.optim.Optimizer
    learning_rate: float


def make_optimizers(
    parameters: Sequence[nn.Parameter],
    *,
    learning_rate: float,
    muon_learning_rate: float | None,
    weight_decay: float,
    betas: tuple[float, float],
) -> list[RatedOptimizer]:
    """AdamW for all parameters, or Muon for the matrices and AdamW for the others.

    Muon: arXiv 2502.16982, its update scaled to AdamW's. `muon_learning_rate` None: AdamW alone.
    """
    matrices = [parameter for parameter in parameters if parameter.ndim == MATRIX_NDIM]
    if muon_learning_rate is None:
        matrices = []
    is_matrix = {id(matrix) for matrix in matrices}
    others = [parameter for parameter in parameters if id(parameter) not in is_matrix]
    made = []
    if others:
        adamw = torch.optim.AdamW(others, lr=learning_rate, betas=betas, weight_decay=weight_decay)
        made.append(RatedOptimizer(adamw, learning_rate))
    for shard in split_evenly(matrices, NUM_MUON_SHARDS):
        muon = torch.optim.Muon(
            shard,
            lr=muon_learning_rate or 0.0,
            momentum=0.95,
            weight_decay=weight_decay,
            adjust_lr_fn="match_rms_adamw",
        )
        made.append(RatedOptimizer(muon, muon_learning_rate or 0.0))
    return made


def step_optimizers(
    optimizers: Sequence[RatedOptimizer], factor: float, device: torch.device
) -> None:
    """Step each at `factor` times its peak rate, in parallel, then clear the gradients."""

    def step(rated: RatedOptimizer) -> None:
        set_learning_rate(rated.optimizer, rated.learning_rate * factor)
        rated.optimizer.step()

    list(parallel_map(step, optimizers, device))
    for rated in optimizers:
        rated.optimizer.zero_grad()

"""Gradients of a batch in parallel passes, clipped; the same bits on any number of cores."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from producer.policy.torch_policy.cpu_parallel import add_gradients, parallel_map
from producer.policy.torch_policy.seeded_dropout import dropout_drawn_from
from producer.seeds import derived_seed

MAX_GRADIENT_NORM: Final = 1.0
MicroBatch = TypeVar("MicroBatch")


class BatchGradient(NamedTuple):
    """What a batch came to; the gradients are in the parameters."""

    loss: float
    """Sum over micro-batches."""
    norm: float
    """Global L2 norm before clipping."""


def set_learning_rate(optimizer: torch.optim.Optimizer, learning_rate: float) -> None:
    """Of every parameter group."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate


def accumulate_gradients(
    loss_of: Callable[[MicroBatch], Tensor],
    micro_batches: Sequence[MicroBatch],
    parameters: Sequence[nn.Parameter],
    *,
    max_norm: float | None = MAX_GRADIENT_NORM,
    dropout_seed: int | None = None,
) -> BatchGradient:
    """Clipped gradients of the summed losses, added to the parameters' `.grad`.

    Micro-batches run in parallel and are added in order, so the result has the same bits on any
    number of cores. `max_norm` None: not clipped. `dropout_seed` None: no dropout.
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
    bound = float("inf") if max_norm is None else max_norm
    return BatchGradient(total, float(torch.nn.utils.clip_grad_norm_(parameters, bound)))

"""What both stages of the warm-up share: gradients, clipping, setting the learning rate."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import torch
from torch import Tensor, nn

from producer.policy.torch_policy.cpu_parallel import add_gradients, parallel_map

MAX_GRADIENT_NORM: Final = 1.0
MicroBatch = TypeVar("MicroBatch")


def set_learning_rate(optimizer: torch.optim.Optimizer, learning_rate: float) -> None:
    """Of every parameter group."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate


def accumulate_gradients(
    loss_of: Callable[[MicroBatch], Tensor],
    micro_batches: Sequence[MicroBatch],
    parameters: Sequence[nn.Parameter],
) -> float:
    """Clipped gradients of the summed losses into the parameters' `.grad`; returns that sum.

    Micro-batches run in parallel and are added in order, so the result has the same bits on any
    number of cores.
    """

    def backward(micro_batch: MicroBatch) -> tuple[float, tuple[Tensor | None, ...]]:
        loss = loss_of(micro_batch)
        return float(loss.detach()), torch.autograd.grad(loss, parameters, allow_unused=True)

    total = 0.0
    for loss, gradients in parallel_map(backward, micro_batches, parameters[0].device):
        add_gradients(parameters, gradients)
        total += loss
    torch.nn.utils.clip_grad_norm_(parameters, MAX_GRADIENT_NORM)
    return total

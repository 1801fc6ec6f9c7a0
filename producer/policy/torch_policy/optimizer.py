"""The optimiser of the weights an update trains: adapter, value head and reward model."""

import math
from collections.abc import Sequence

import torch
from torch import nn

from producer.errors import CuaTrainError


def make_optimizer(parameters: Sequence[nn.Parameter]) -> torch.optim.AdamW:
    """AdamW with tinker's betas; each step sets its learning rate and weight decay."""
    return torch.optim.AdamW(parameters, lr=0.0, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.0)


def optimizer_step(
    optimizer: torch.optim.AdamW,
    learning_rate: float,
    max_gradient_norm: float | None,
    weight_decay: float = 0.0,
) -> float:
    """Take one step; returns the gradient's global L2 norm before clipping (None: no clipping).

    Raises CuaTrainError and changes no weight if the norm is not finite.
    """
    parameters = [item for group in optimizer.param_groups for item in group["params"]]
    norm = float(nn.utils.clip_grad_norm_(parameters, max_gradient_norm or float("inf")))
    if not math.isfinite(norm):
        message = (
            f"the update's gradient is {norm}, which is not finite; lower learning_rate or the size"
            " of the rewards and run again (the state before the step is kept), or begin another"
            " training"
        )
        raise CuaTrainError(message)
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
        group["weight_decay"] = weight_decay
    optimizer.step()
    return norm

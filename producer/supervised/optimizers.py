"""AdamW, or Muon for matrices beside it, over the weights that a network trains."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import nn

from producer.policy.torch_policy.cpu_parallel import parallel_map, split_evenly
from producer.supervised.gradients import set_learning_rate

NUM_MUON_SHARDS: Final = 4
"""Of similar numbers of matrices; they step in parallel."""
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
    """AdamW of all parameters, or of those that are no matrices when Muon gets the matrices.

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
    """One step of each at `factor` times its peak rate, in parallel; then no gradients are left."""

    def step(rated: RatedOptimizer) -> None:
        set_learning_rate(rated.optimizer, rated.learning_rate * factor)
        rated.optimizer.step()

    list(parallel_map(step, optimizers, device))
    for rated in optimizers:
        rated.optimizer.zero_grad()

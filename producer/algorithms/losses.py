"""Policy gradient losses with tinker-cookbook's semantics.

Sums over completion tokens, to be minimised.

Axis: N completion tokens of any number of trajectories. `old` is the log-prob recorded when the
token was sampled, nats.
"""

from typing import Final, Literal

import torch
from torch import Tensor

LossName = Literal["importance_sampling", "ppo", "cispo"]
CLIP_LOW: Final = 0.8
CLIP_HIGH: Final = 1.2
"""Bounds of the ratio new / old probability for ppo and cispo (tinker's defaults)."""


def policy_loss(
    name: LossName, logprobs_N: Tensor, old_logprobs_N: Tensor, advantages_N: Tensor
) -> Tensor:
    """A scalar; gradients flow through `logprobs_N` alone.

    importance_sampling: -sum(ratio * A). ppo: -sum(min(ratio * A, clip(ratio) * A)) (arXiv
    1707.06347). cispo: -sum(stop_gradient(clip(ratio)) * log p * A) (arXiv 2506.13585), which keeps
    the gradient of clipped tokens.
    """
    ratio_N = torch.exp(logprobs_N - old_logprobs_N)
    clipped_N = ratio_N.clamp(CLIP_LOW, CLIP_HIGH)
    match name:
        case "importance_sampling":
            objective_N = ratio_N * advantages_N
        case "ppo":
            objective_N = torch.minimum(ratio_N * advantages_N, clipped_N * advantages_N)
        case "cispo":
            objective_N = clipped_N.detach() * logprobs_N * advantages_N
    return -objective_N.sum()

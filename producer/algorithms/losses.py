"""Policy-gradient losses with tinker-cookbook's semantics: sums over completion tokens.

Axis: N completion tokens of any number of trajectories. Log-probs in nats; `old` is the one
recorded when the token was sampled.
"""

from typing import Final, Literal

import torch
from torch import Tensor

LossName = Literal["importance_sampling", "ppo", "cispo"]
CLIP_LOW: Final = 0.8
CLIP_HIGH: Final = 1.2
"""Clipping bounds of the probability ratio new / old for ppo and cispo (tinker's defaults)."""


def policy_loss(
    name: LossName, logprobs_N: Tensor, old_logprobs_N: Tensor, advantages_N: Tensor
) -> Tensor:
    """The scalar loss to minimise; gradients flow through `logprobs_N` alone.

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

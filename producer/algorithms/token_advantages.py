"""Advantages that differ between the tokens of a rollout, from rewards per token and values.

Observations between the actions are masked out: values and returns pass over them unchanged.

Axes: B sequences, T tokens. Masks: 1 on completion tokens, 0 elsewhere.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from producer.algorithms.advantages import WHITENING_EPSILON


class GaeResult(NamedTuple):
    """Advantages and the values that a value head is trained towards."""

    advantages_BT: Tensor
    """Whitened over the mask."""
    returns_BT: Tensor
    """Advantages before whitening plus values."""


def gae(
    rewards_BT: Tensor, values_BT: Tensor, mask_BT: Tensor, *, gamma: float, lam: float
) -> GaeResult:
    """Generalised advantage estimation (arXiv 1506.02438); no gradient.

    delta_t = r_t + gamma V_(t+1) - V_t and A_t = delta_t + gamma lam A_(t+1), where t + 1 is the
    next masked-in token. `values_BT` are the value head's at sampling time.
    """
    advantages_BT = torch.zeros_like(rewards_BT)
    next_value_B = next_advantage_B = rewards_BT.new_zeros(len(rewards_BT))
    with torch.no_grad():
        for at in reversed(range(rewards_BT.shape[1])):
            mask_B = mask_BT[:, at].to(rewards_BT.dtype)
            delta_B = rewards_BT[:, at] + gamma * next_value_B - values_BT[:, at]
            advantage_B = delta_B + gamma * lam * next_advantage_B
            next_value_B = values_BT[:, at] * mask_B + (1 - mask_B) * next_value_B
            next_advantage_B = advantage_B * mask_B + (1 - mask_B) * next_advantage_B
            advantages_BT[:, at] = next_advantage_B
        returns_BT = advantages_BT + values_BT
        return GaeResult(whitened(advantages_BT, mask_BT), returns_BT)


def discounted_returns(rewards_BT: Tensor, mask_BT: Tensor, *, gamma: float) -> Tensor:
    """[B, T]: reward to go, r_t + gamma * (that of the next masked-in token); 0 off the mask.

    A reward off the mask is dropped, as in verl.
    """
    returns_BT = torch.zeros_like(rewards_BT)
    running_B = rewards_BT.new_zeros(len(rewards_BT))
    for at in reversed(range(rewards_BT.shape[1])):
        mask_B = mask_BT[:, at].to(rewards_BT.dtype)
        return_B = rewards_BT[:, at] + gamma * running_B
        returns_BT[:, at] = return_B * mask_B
        running_B = return_B * mask_B + running_B * (1 - mask_B)
    return returns_BT


def whitened(values_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Mean 0 and sample variance 1 over the mask; what is off the mask moves along."""
    mask_BT = mask_BT.to(values_BT.dtype)
    num_tokens = mask_BT.sum().clamp(min=1)
    mean = (values_BT * mask_BT).sum() / num_tokens
    squares = ((values_BT - mean).square() * mask_BT).sum()
    # One token has no variance, and becomes 0; without any nothing is moved.
    variance = squares / (num_tokens - 1).clamp(min=1)
    return (values_BT - mean) * torch.rsqrt(variance + WHITENING_EPSILON)


def is_last_token(mask_BT: Tensor) -> Tensor:
    """[B, T]: True on each row's last masked-in token; nowhere in a row without tokens."""
    mask_BT = mask_BT > 0
    num_left_BT = mask_BT.flip(1).cumsum(1).flip(1)
    return mask_BT & (num_left_BT == 1)

"""Counts the tokens that a loss clips, for the clip fraction; `losses` has the losses themselves.

Axes: B sequences, T tokens. Masks: True on completion tokens.
"""

import torch
from torch import Tensor

from producer.algorithms.names import CLIPPED, LossName
from producer.algorithms.ratio_bounds import Clip


def num_clipped(
    loss_fn: LossName,
    log_ratio_BT: Tensor,
    advantages_BT: Tensor,
    mask_BT: Tensor,
    clip: Clip,
) -> int:
    """Number of trained tokens whose ratio new / old is clipped.

    In ppo and gspo clipped tokens have no gradient. gspo uses the sequence's ratio. Returns 0 for
    losses that do not clip. Tokens with advantage 0 do not count.
    """
    if loss_fn not in CLIPPED:
        return 0
    if loss_fn == "gspo":
        own_BT = torch.where(mask_BT, log_ratio_BT, 0.0)
        mean_B = own_BT.sum(dim=-1) / mask_BT.sum(dim=-1).clamp(min=1)
        log_ratio_BT = mean_B[:, None].expand_as(own_BT)
    ratio_BT = torch.exp(log_ratio_BT)
    is_low_BT, is_high_BT = ratio_BT < 1 - clip.low, ratio_BT > 1 + clip.high
    if loss_fn == "cispo":
        is_cut_BT = (is_low_BT | is_high_BT) & (advantages_BT != 0)
    else:
        is_cut_BT = (is_low_BT & (advantages_BT < 0)) | (is_high_BT & (advantages_BT > 0))
        if clip.dual is not None:
            is_cut_BT = is_cut_BT | ((ratio_BT > clip.dual) & (advantages_BT < 0))
    return int((is_cut_BT & mask_BT).sum())

"""Which tokens a loss clips, for its clip fraction; the losses themselves are in `losses`.

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
    """Trained tokens whose ratio new / old is cut: in ppo and gspo they have no gradient.

    In gspo the ratio is the sequence's. 0 for losses that do not clip. Tokens without an advantage
    do not count.
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

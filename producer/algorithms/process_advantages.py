"""Advantages from the rewards of single tokens, compared within a group of responses.

What a process reward model makes of the steps of a response comes as rewards of their tokens. Names
and parameters are those of the published functions; each returns advantages and returns, which are
the same. What the published code does wrong is not repeated: a group of one gives 0, and a group is
found by the value of its index.

Axes: B responses, T tokens. Rewards off the mask must be 0.
"""

import logging
from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import torch
from torch import Tensor

from producer.algorithms.token_advantages import is_last_token

logger = logging.getLogger(__name__)

EPSILON: Final = 1e-6
"""Added to a standard deviation, which is that of a sample."""
WEIGHT_FACTOR: Final = 0.5
Index = Tensor | np.ndarray | Sequence[Hashable]
"""For every response the group that it belongs to."""
AdvantagesAndReturns = tuple[Tensor, Tensor]


def compute_grpo_process_advantage_avg_unique(
    token_level_rewards: Tensor, eos_mask: Tensor, index: Index, epsilon: float = EPSILON
) -> AdvantagesAndReturns:
    """A response's score is the mean of its different rewards that are not 0; 0 without any.

    A = (score - mean of the group) / (sd + epsilon), given to the tokens whose reward r is not 0:
    as (r - 1) A where A > 0 and r > 1, r A where A > 0 and r <= 1, (1 - r) A where A <= 0. Other
    tokens have 0. Made for rewards of steps; `is_outcome_only` rewards are warned about.
    """
    if is_outcome_only(token_level_rewards, eos_mask):
        warn_of_outcome_only()
    rewards_BT = token_level_rewards.detach().double()
    scores_B = torch.tensor(
        [_mean_of_different(row[row != 0]) for row in rewards_BT], dtype=torch.float64
    ).to(rewards_BT.device)
    advantages_B1 = _normalized(scores_B, index, epsilon)[:, None]
    better_BT = torch.where(rewards_BT > 1, rewards_BT - 1, rewards_BT)
    shares_BT = torch.where(advantages_B1 > 0, better_BT, 1 - rewards_BT)
    advantages_BT = torch.where(rewards_BT != 0, shares_BT * advantages_B1, 0.0)
    return _both(advantages_BT, token_level_rewards)


def compute_weighted_grpo_advantage(
    token_level_rewards: Tensor,
    eos_mask: Tensor,
    index: Index,
    weight_factor: float = WEIGHT_FACTOR,
    epsilon: float = EPSILON,
) -> AdvantagesAndReturns:
    """GRPO that trusts the better responses of a group more, on every token of the mask.

    S = sum of a response's rewards, A = (S - mean) / (sd + epsilon), weight = weight_factor +
    (1 - weight_factor) (S - min) / (max - min), or 1 where all are equal.
    """
    scores_B = token_level_rewards.detach().double().sum(dim=1)
    advantages_B = _normalized(scores_B, index, epsilon)
    weights_B = torch.ones_like(scores_B)
    for places in groups_of(index):
        own_G = scores_B[places]
        spread = own_G.max() - own_G.min()
        if spread > 0:
            weights_B[places] = weight_factor + (1 - weight_factor) * (own_G - own_G.min()) / spread
    return _both((weights_B * advantages_B)[:, None] * eos_mask.double(), token_level_rewards)


def compute_token_wise_advantage(
    token_level_rewards: Tensor, eos_mask: Tensor, index: Index, epsilon: float = EPSILON
) -> AdvantagesAndReturns:
    """Each token's reward against those at its position: (r - mean) / (sd + epsilon).

    Over the group's responses that have a token there; a token alone at its position has 0.
    """
    rewards_BT = token_level_rewards.detach().double()
    mask_BT = eos_mask > 0
    advantages_BT = torch.zeros_like(rewards_BT)
    for places in groups_of(index):
        own_GT, alive_GT = rewards_BT[places], mask_BT[places]
        num_T = alive_GT.sum(dim=0)
        kept_GT = torch.where(alive_GT, own_GT, 0.0)
        mean_T = kept_GT.sum(dim=0) / num_T.clamp(min=1)
        centered_GT = torch.where(alive_GT, own_GT - mean_T, 0.0)
        sd_T = (centered_GT.square().sum(dim=0) / (num_T - 1).clamp(min=1)).sqrt()
        advantages_BT[places] = torch.where(num_T > 1, centered_GT / (sd_T + epsilon), 0.0)
    return _both(advantages_BT, token_level_rewards)


def is_outcome_only(token_level_rewards: Tensor, eos_mask: Tensor) -> bool:
    """Whether no response has a reward on another token than its last; False without rewards."""
    rewarded_BT = token_level_rewards != 0
    is_elsewhere_BT = rewarded_BT & ~is_last_token(eos_mask)
    return bool(rewarded_BT.any()) and not bool(is_elsewhere_BT.any())


@lru_cache(maxsize=1)
def warn_of_outcome_only() -> None:
    """Say once in a process that a function for process rewards gets outcomes alone."""
    logger.warning(
        "compute_grpo_process_advantage_avg_unique: the rewards are outcomes on the last token, so"
        " that only the last token of right answers is trained; use compute_weighted_grpo_advantage"
        " or a process reward model"
    )


def groups_of(index: Index) -> list[list[int]]:
    """The places of each group's responses, by the value of the index, in order of appearance."""
    values = index.tolist() if isinstance(index, Tensor | np.ndarray) else list(index)
    groups: dict[Hashable, list[int]] = {}
    for place, value in enumerate(values):
        groups.setdefault(value, []).append(place)
    return list(groups.values())


def _normalized(scores_B: Tensor, index: Index, epsilon: float) -> Tensor:
    """(score - mean of the group) / (sd of the sample + epsilon); 0 in a group of one."""
    advantages_B = torch.zeros_like(scores_B)
    for places in groups_of(index):
        if len(places) > 1:
            own_G = scores_B[places]
            advantages_B[places] = (own_G - own_G.mean()) / (own_G.std() + epsilon)
    return advantages_B


def _mean_of_different(rewards: Tensor) -> float:
    return float(torch.unique(rewards).mean()) if len(rewards) else 0.0


def _both(advantages_BT: Tensor, like: Tensor) -> AdvantagesAndReturns:
    advantages_BT = advantages_BT.to(like.dtype)
    return advantages_BT, advantages_BT

"""Advantages that differ between the tokens of a rollout: GAE, process rewards, PRIME.

GAE takes rewards and values per token. Observations between the actions are masked out; values and
returns carry over them unchanged.

Process rewards are the rewards of steps, assigned to their tokens and compared within a group of
responses. Names and parameters of these functions are the published ones; each returns advantages
and returns, which are equal. Two errors of the published code are not repeated: a group of one gets
0, and groups are identified by the value of their index.

PRIME (arXiv 2502.01456): a reward model learned from outcomes, whose log ratios are step rewards.
Formulas of verl's recipe `prime`, with groups by index, in any order and of any size.

Axes: B sequences, T tokens. Masks: 1 on completion tokens, 0 elsewhere; rewards off the mask are 0.
"""

import logging
from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from producer.algorithms.advantages import WHITENING_EPSILON
from producer.algorithms.settings import PrimeSettings

logger = logging.getLogger(__name__)

EPSILON: Final = 1e-6
"""Added to a standard deviation, which is the sample's."""
WEIGHT_FACTOR: Final = 0.5
Index = Tensor | np.ndarray | Sequence[Hashable]
"""The group of each response."""
AdvantagesAndReturns = tuple[Tensor, Tensor]


class GaeResult(NamedTuple):
    """Advantages, and the targets that a value head is trained towards."""

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
    """Scale to mean 0 and sample variance 1 over the mask; other entries are transformed alike."""
    mask_BT = mask_BT.to(values_BT.dtype)
    num_tokens = mask_BT.sum().clamp(min=1)
    mean = (values_BT * mask_BT).sum() / num_tokens
    squares = ((values_BT - mean).square() * mask_BT).sum()
    # A single token has no variance and becomes 0; without tokens nothing is moved.
    variance = squares / (num_tokens - 1).clamp(min=1)
    return (values_BT - mean) * torch.rsqrt(variance + WHITENING_EPSILON)


def is_last_token(mask_BT: Tensor) -> Tensor:
    """[B, T]: True on each row's last masked-in token; nowhere in a row without tokens."""
    mask_BT = mask_BT > 0
    num_left_BT = mask_BT.flip(1).cumsum(1).flip(1)
    return mask_BT & (num_left_BT == 1)


def compute_grpo_process_advantage_avg_unique(
    token_level_rewards: Tensor, eos_mask: Tensor, index: Index, epsilon: float = EPSILON
) -> AdvantagesAndReturns:
    """A response's score is the mean of its distinct nonzero rewards, or 0 if it has none.

    A = (score - mean of the group) / (sd + epsilon) is given to the tokens whose reward r is not 0:
    as (r - 1) A where A > 0 and r > 1, r A where A > 0 and r <= 1, (1 - r) A where A <= 0. Other
    tokens get 0. Intended for rewards of steps; warns if rewards are `is_outcome_only`.
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
    """GRPO that gives the better responses of a group more weight, on every token of the mask.

    S = sum of a response's rewards, A = (S - mean) / (sd + epsilon), weight = weight_factor +
    (1 - weight_factor) (S - min) / (max - min), or 1 if all S are equal.
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
    """Compare each token's reward with those at its position: (r - mean) / (sd + epsilon).

    Mean and sd are over the group's responses that have a token there; a single token gets 0.
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
    """Whether only last tokens of responses have rewards; False without rewards."""
    rewarded_BT = token_level_rewards != 0
    is_elsewhere_BT = rewarded_BT & ~is_last_token(eos_mask)
    return bool(rewarded_BT.any()) and not bool(is_elsewhere_BT.any())


@lru_cache(maxsize=1)
def warn_of_outcome_only() -> None:
    """Warn once per process that a function for process rewards gets only outcomes."""
    logger.warning(
        "compute_grpo_process_advantage_avg_unique: the rewards are outcomes on the last token, so"
        " that only the last token of right answers is trained; use compute_weighted_grpo_advantage"
        " or a process reward model"
    )


def groups_of(index: Index) -> list[list[int]]:
    """Indices of each group's responses, by the value of `index`, in order of appearance."""
    values = index.tolist() if isinstance(index, Tensor | np.ndarray) else list(index)
    groups: dict[Hashable, list[int]] = {}
    for place, value in enumerate(values):
        groups.setdefault(value, []).append(place)
    return list(groups.values())


def _normalized(scores_B: Tensor, index: Index, epsilon: float) -> Tensor:
    """(score - mean of the group) / (sample sd + epsilon); 0 in a group of one."""
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


def implicit_rewards(
    reward_logprobs_BT: Tensor, reference_logprobs_BT: Tensor, mask_BT: Tensor, beta: float
) -> Tensor:
    """[B, T]: beta (log p_rm - log p_ref) per token, without gradient; 0 off the mask."""
    ratios_BT = (reward_logprobs_BT - reference_logprobs_BT).detach()
    return torch.where(mask_BT > 0, beta * ratios_BT, 0.0)


def reward_model_loss(
    reward_logprobs_BT: Tensor,
    reference_logprobs_BT: Tensor,
    mask_BT: Tensor,
    is_right_B: Tensor,
    beta: float,
) -> Tensor:
    """Cross-entropy of sigmoid(beta * sum of log ratios) with the outcome, mean over responses.

    `is_right_B`: 1 or 0, or a fraction. The gradient reaches only `reward_logprobs_BT`.
    """
    ratios_BT = reward_logprobs_BT - reference_logprobs_BT.detach()
    logits_B = beta * torch.where(mask_BT > 0, ratios_BT, 0.0).sum(dim=1)
    return binary_cross_entropy_with_logits(logits_B, is_right_B.to(logits_B.dtype))


def compute_prime_advantage(
    process_rewards_BT: Tensor,
    outcomes_B: Tensor,
    mask_BT: Tensor,
    index: Index,
    settings: PrimeSettings,
) -> AdvantagesAndReturns:
    """RLOO of process rewards and of outcomes, summed to returns and whitened over the mask.

    Process: each token's reward minus the leave-one-out mean of the group's per-response mean token
    rewards, scaled as in RLOO: r n / (n - 1) - sum of means / (n - 1). Outcome: the same for the
    outcomes, on the last token. A group of one keeps its rewards. The return of a token is the sum
    from that token on.
    """
    with torch.no_grad():
        mask_BT = mask_BT.to(process_rewards_BT.dtype)
        process_BT = _left_one_out(process_rewards_BT * mask_BT, mask_BT, index)
        last_BT = is_last_token(mask_BT).to(mask_BT.dtype)
        outcome_BT = _left_one_out(outcomes_B[:, None] * last_BT, last_BT, index)
        rewards_BT = (
            settings.prime_process_coef * process_BT + settings.prime_outcome_coef * outcome_BT
        )
        returns_BT = rewards_BT.flip(1).cumsum(1).flip(1)
        return whitened(returns_BT, mask_BT) * mask_BT, returns_BT * mask_BT


def _left_one_out(rewards_BT: Tensor, places_BT: Tensor, index: Index) -> Tensor:
    """RLOO of the rewards at `places_BT`; each response counts with their mean."""
    baselined_BT = rewards_BT.clone()
    means_B = rewards_BT.sum(dim=1) / places_BT.sum(dim=1).clamp(min=1)
    for group in groups_of(index):
        others = len(group) - 1
        if others:
            baseline = means_B[group].sum() / others
            baselined_BT[group] = rewards_BT[group] * (len(group) / others) - baseline
    return baselined_BT * places_BT

"""PRIME (arXiv 2502.01456): a reward model learnt from outcomes, whose log ratios are step rewards.

Formulas of verl's recipe `prime`, with groups by index in any order and size.

Axes: B responses, T tokens; mask 1 on completion tokens.
"""

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from producer.algorithms.process_advantages import AdvantagesAndReturns, Index, groups_of
from producer.algorithms.settings import PrimeSettings
from producer.algorithms.token_advantages import is_last_token, whitened


def implicit_rewards(
    reward_logprobs_BT: Tensor, reference_logprobs_BT: Tensor, mask_BT: Tensor, beta: float
) -> Tensor:
    """Of each completion token beta (log p_rm - log p_ref), without gradient; 0 off the mask."""
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

    `is_right_B`: 1 or 0, or a share. The gradient reaches `reward_logprobs_BT` alone.
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
    """RLOO on process and on outcome, summed to returns, whitened over the mask.

    Process: each token's reward minus the mean, over the group's other responses, of their mean
    reward of a token, counting the own reward as RLOO does: r n / (n - 1) - sum of means / (n - 1).
    Outcome: the same of the outcomes, on the last token. A group of one keeps its rewards. The
    return of a token is the sum from it on.
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
    """RLOO of rewards at `places_BT`; a response counts with their mean."""
    baselined_BT = rewards_BT.clone()
    means_B = rewards_BT.sum(dim=1) / places_BT.sum(dim=1).clamp(min=1)
    for group in groups_of(index):
        others = len(group) - 1
        if others:
            baseline = means_B[group].sum() / others
            baselined_BT[group] = rewards_BT[group] * (len(group) / others) - baseline
    return baselined_BT * places_BT

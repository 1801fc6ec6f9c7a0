"""Which tokens a loss clips, by hand."""

import pytest
import torch

from producer.algorithms.clipping import num_clipped
from producer.algorithms.losses import LOSSES
from producer.algorithms.names import LossName
from producer.algorithms.ratio_bounds import Clip

RATIOS = (0.5, 0.9, 1.0, 1.1, 2.0, 2.0)
LOG_RATIO = torch.tensor([RATIOS]).log()
MASK = torch.tensor([[True] * 5 + [False]])
CLIP = Clip(0.2, 0.2)


def clipped(loss: LossName, advantage: float, clip: Clip = CLIP) -> int:
    return num_clipped(loss, LOG_RATIO, torch.full((1, 6), advantage), MASK, clip)


def test_ppo_cuts_what_would_move_further_out_of_its_bounds() -> None:
    # 2.0 with a positive advantage, 0.5 with a negative one; the last token is masked.
    assert (clipped("ppo", 1.0), clipped("ppo", -1.0), clipped("ppo", 0.0)) == (1, 1, 0)
    # With the dual clip at 1.5 also 2.0 where the advantage is negative.
    assert clipped("ppo", -1.0, Clip(0.2, 0.2, 1.5)) == 2


@pytest.mark.parametrize("advantage", [1.0, -1.0])
@pytest.mark.parametrize("clip", [CLIP, Clip(0.2, 0.2, 1.5)])
def test_a_token_that_ppo_cuts_has_no_gradient(advantage: float, clip: Clip) -> None:
    logprobs = LOG_RATIO.clone().requires_grad_()
    advantages = torch.full((1, 6), advantage)
    loss = LOSSES["ppo"](logprobs, torch.zeros(1, 6), advantages, MASK, clip)
    (gradient,) = torch.autograd.grad(loss[MASK].sum(), logprobs)
    assert int((gradient[MASK] == 0).sum()) == clipped("ppo", advantage, clip)


def test_cispo_cuts_on_both_sides_whatever_the_sign() -> None:
    assert (clipped("cispo", 1.0), clipped("cispo", -1.0), clipped("cispo", 0.0)) == (2, 2, 0)


def test_gspo_cuts_all_tokens_of_a_sequence_by_its_mean_ratio() -> None:
    # Geometric means: (2 * 2 * 1)^(1/3) = 1.59, and 1.05 of one token.
    log_ratio = torch.tensor([[2.0, 2.0, 1.0], [1.05, 9.0, 9.0]]).log()
    mask = torch.tensor([[True, True, True], [True, False, False]])
    advantages = torch.ones(2, 3)
    assert num_clipped("gspo", log_ratio, advantages, mask, Clip(0.1, 0.1)) == 3
    assert num_clipped("gspo", log_ratio, advantages, mask, Clip(0.1, 0.04)) == 4
    assert num_clipped("gspo", log_ratio, -advantages, mask, Clip(0.1, 0.1)) == 0


def test_losses_without_bounds_cut_nothing() -> None:
    assert clipped("importance_sampling", 1.0) == clipped("reinforce", 1.0) == 0

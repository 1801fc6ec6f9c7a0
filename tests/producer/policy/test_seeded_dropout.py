"""Dropout of LoRA adapters: a function of the pass's seed, never of threads or repetition."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from producer.policy.torch_policy.seeded_dropout import SeededDropout, dropout_drawn_from

ONES = torch.ones(200, 50)


def test_without_a_seed_nothing_is_dropped() -> None:
    dropout = SeededDropout(0.5, 0)
    assert torch.equal(dropout(ONES), ONES)
    with dropout_drawn_from(None):
        assert torch.equal(dropout(ONES), ONES)


def test_the_share_p_is_dropped_and_the_rest_is_scaled_to_the_same_mean() -> None:
    with dropout_drawn_from(3):
        dropped = SeededDropout(0.1, 0)(ONES)
    assert sorted(dropped.unique().tolist()) == pytest.approx([0, 1 / 0.9])
    # 10,000 draws: the standard error of the share is 0.003.
    assert float((dropped == 0).float().mean()) == pytest.approx(0.1, abs=0.012)


def test_seed_and_module_choose_the_mask() -> None:
    def mask(seed: int, number: int) -> torch.Tensor:
        with dropout_drawn_from(seed):
            kept: torch.Tensor = SeededDropout(0.5, number)(ONES)
        return kept

    assert torch.equal(mask(1, 1), mask(1, 1))
    assert not torch.equal(mask(1, 1), mask(2, 1))
    assert not torch.equal(mask(1, 1), mask(1, 2))


def test_passes_on_other_threads_do_not_change_a_mask() -> None:
    dropout = SeededDropout(0.5, 0)

    def mask(seed: int) -> torch.Tensor:
        with dropout_drawn_from(seed):
            kept: torch.Tensor = dropout(ONES)
        return kept

    alone = [mask(seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(mask, range(8)))
    assert all(torch.equal(*pair) for pair in zip(alone, together, strict=True))


def test_a_layer_computed_again_in_the_backward_pass_drops_the_same() -> None:
    dropout = SeededDropout(0.5, 0)
    gradients = []
    for recompute in (False, True):
        values = ONES.clone().requires_grad_()

        def layer(given: torch.Tensor) -> torch.Tensor:
            dropped: torch.Tensor = dropout(given * 2)
            return dropped.square()

        with dropout_drawn_from(5):
            out = (
                checkpoint(layer, values, use_reentrant=False, preserve_rng_state=False)
                if recompute
                else layer(values)
            )
            gradients.append(torch.autograd.grad(out.sum(), values)[0])
    assert torch.equal(*gradients)

"""Draws from a large vocabulary: the right distribution, at the cost of a softmax."""

import numpy as np
import pytest
import torch
from torch import Tensor

from producer.policy.torch_policy.sampling import BLOCK, sample_tokens
from tests.support.created_tensors import created_tensors

SIZES = (3, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 3 * BLOCK + 17)
QWEN_VOCABULARY = 151_936


def logits(num_rows: int, size: int, seed: int = 0, spread: float = 3.0) -> Tensor:
    return spread * torch.randn(num_rows, size, generator=torch.Generator().manual_seed(seed))


def uniforms(num_rows: int, seed: int = 1) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).random(num_rows))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("suppressed", [(), (0, 2)])
def test_a_draw_is_that_of_the_whole_cumulative_distribution(
    size: int, suppressed: tuple[int, ...]
) -> None:
    logits_BV, uniforms_B = logits(400, size), uniforms(400)
    tokens_B, logprobs_B = sample_tokens(logits_BV, torch.full((400,), 0.8), uniforms_B, suppressed)
    expected_BV = torch.log_softmax(logits_BV / 0.8, dim=-1)
    probabilities_BV = expected_BV.double().exp().numpy()
    probabilities_BV[:, list(suppressed)] = 0.0
    for row in range(400):
        cumulative_V = probabilities_BV[row].cumsum()
        target = float(uniforms_B[row]) * cumulative_V[-1]
        # A uniform number within the rounding of a boundary may fall on either side of it. A
        # block's probabilities are float32 exponentials: each within an eps of itself.
        near = torch.finfo(torch.float32).eps * cumulative_V[-1]
        allowed = np.searchsorted(cumulative_V, [target - near, target + near], side="right")
        assert allowed[0] <= tokens_B[row] <= allowed[1]
        assert probabilities_BV[row, tokens_B[row]] > 0
    assert torch.equal(logprobs_B, expected_BV[torch.arange(400), tokens_B])


@pytest.mark.parametrize("size", [BLOCK, 3 * BLOCK + 17])
def test_tokens_are_drawn_as_often_as_their_probability(size: int) -> None:
    num_draws, num_bins = 20_000, 40
    logits_V = logits(1, size, spread=2.0)
    tokens_B, _ = sample_tokens(
        logits_V.expand(num_draws, -1), torch.ones(num_draws), uniforms(num_draws)
    )
    # Bins of interleaved tokens, so that every block is in every bin.
    probabilities_V = torch.softmax(logits_V[0].double(), dim=-1)
    bins_V = torch.arange(size) % num_bins
    expected = torch.zeros(num_bins, dtype=torch.float64).index_add(0, bins_V, probabilities_V)
    observed = torch.bincount(bins_V[tokens_B], minlength=num_bins)
    statistic = ((observed - num_draws * expected) ** 2 / (num_draws * expected)).sum()
    # 39 degrees of freedom: mean 39, standard deviation sqrt(78); five of them is 3e-5.
    assert statistic < 39 + 5 * 78**0.5


@pytest.mark.parametrize("uniform", [0.0, 0.5, 1 - 2**-53])
@pytest.mark.parametrize("only", [0, BLOCK - 1, BLOCK, 2 * BLOCK + 5])
def test_a_token_of_probability_zero_is_never_drawn_from_any_block(
    uniform: float, only: int
) -> None:
    logits_BV = torch.full((1, 2 * BLOCK + 6), -torch.inf)
    logits_BV[0, only] = 0.0
    uniforms_B = torch.tensor([uniform], dtype=torch.float64)
    tokens_B, logprobs_B = sample_tokens(logits_BV, torch.ones(1), uniforms_B)
    assert (tokens_B.item(), logprobs_B.item()) == (only, 0.0)


@pytest.mark.parametrize("uniform", [0.0, 1 - 2**-53])
def test_the_smallest_and_the_largest_uniform_number_draw_the_first_and_the_last_token(
    uniform: float,
) -> None:
    size = 3 * BLOCK + 17
    uniforms_B = torch.tensor([uniform], dtype=torch.float64)
    tokens_B, _ = sample_tokens(torch.zeros(1, size), torch.ones(1), uniforms_B)
    assert tokens_B.item() == (size - 1 if uniform else 0)


def test_the_likeliest_token_of_any_block_is_taken_at_temperature_zero() -> None:
    size = 3 * BLOCK + 17
    logits_BV = logits(50, size)
    tokens_B, _ = sample_tokens(logits_BV, torch.zeros(50), uniforms(50))
    assert torch.equal(tokens_B, logits_BV.argmax(dim=-1))


def test_a_row_draws_the_same_token_whatever_is_drawn_beside_it() -> None:
    logits_BV, uniforms_B = logits(16, 3 * BLOCK + 17), uniforms(16)
    together = sample_tokens(logits_BV, torch.ones(16), uniforms_B)
    for row in range(16):
        alone = sample_tokens(logits_BV[row : row + 1], torch.ones(1), uniforms_B[row : row + 1])
        assert (alone[0][0], alone[1][0]) == (together[0][row], together[1][row])


def test_no_row_of_float64_is_as_long_as_a_large_vocabulary() -> None:
    with created_tensors() as created:
        sample_tokens(logits(2, QWEN_VOCABULARY), torch.ones(2), uniforms(2), (151_655,))
    # 297 blocks of 512: a number for each block, and one for each token of the block drawn from.
    assert created.largest(torch.float64) <= 2 * BLOCK

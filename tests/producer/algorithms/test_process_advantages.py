"""Advantages from token rewards: hand-computed, against plain Python, and their invariances."""

import logging
from statistics import mean, stdev

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from producer.algorithms import token_advantages
from producer.algorithms.token_advantages import (
    EPSILON,
    AdvantagesAndReturns,
    Index,
    compute_grpo_process_advantage_avg_unique,
    compute_token_wise_advantage,
    compute_weighted_grpo_advantage,
    is_outcome_only,
)

Rows = list[list[float]]
FUNCTIONS = [
    compute_grpo_process_advantage_avg_unique,
    compute_weighted_grpo_advantage,
    compute_token_wise_advantage,
]


def tensor(rows: Rows) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def rows_of(found: AdvantagesAndReturns) -> Rows:
    advantages_BT, returns_BT = found
    assert torch.equal(advantages_BT, returns_BT)
    rows: Rows = advantages_BT.tolist()
    return rows


def assert_close(found: Rows, expected: Rows) -> None:
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other, rel=0, abs=1e-6)


def test_avg_unique_by_hand() -> None:
    rewards = [[0.5, 0.5, 0.0, 1.5], [0.2, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    # Scores 1.0 (the mean of 0.5 and 1.5), 0.2 and 0: mean 0.4, sd sqrt(0.56 / 2).
    sd = 0.5291502622129182 + 1e-6
    good, bad = 0.6 / sd, -0.2 / sd
    found = compute_grpo_process_advantage_avg_unique(
        tensor(rewards), torch.ones(3, 4), torch.tensor([7, 7, 7])
    )
    assert_close(
        rows_of(found),
        [[0.5 * good, 0.5 * good, 0.0, 0.5 * good], [0.8 * bad, 0.0, 0.0, 0.0], [0.0] * 4],
    )


def test_avg_unique_turns_the_sign_of_what_is_above_one_in_a_bad_response() -> None:
    rewards = [[1.4, 1.0], [2.0, 2.0], [-1.0, 0.5]]
    # Scores 1.2, 2.0, -0.25; mean 59 / 60.
    scores = [1.2, 2.0, -0.25]
    sd = stdev(scores) + 1e-6
    a, b, c = ((score - mean(scores)) / sd for score in scores)
    assert a > 0
    found = compute_grpo_process_advantage_avg_unique(
        tensor(rewards), torch.ones(3, 2), ["x", "x", "x"]
    )
    assert_close(rows_of(found), [[0.4 * a, a], [b, b], [2.0 * c, 0.5 * c]])
    worse = tensor([[1.4, 1.0], [3.0, 3.0]])
    found = compute_grpo_process_advantage_avg_unique(worse, torch.ones(2, 2), [0, 0])
    low = (1.2 - 2.1) / (stdev([1.2, 3.0]) + 1e-6)
    assert rows_of(found)[0] == pytest.approx([-0.4 * low, 0.0], abs=1e-6)


def test_weighted_by_hand() -> None:
    rewards = tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    mask = tensor([[1, 1, 1], [1, 1, 0], [1, 0, 0]])
    # Sums 2, 1, 0: mean 1, sd 1; weights 1, 0.75, 0.5.
    found = compute_weighted_grpo_advantage(rewards, mask, [0, 0, 0])
    one = 1 / (1 + 1e-6)
    assert_close(rows_of(found), [[one] * 3, [0.0] * 3, [-0.5 * one, 0.0, 0.0]])
    found = compute_weighted_grpo_advantage(rewards, mask, [0, 0, 0], weight_factor=0.2)
    assert_close(rows_of(found), [[one] * 3, [0.0] * 3, [-0.2 * one, 0.0, 0.0]])


def test_token_wise_by_hand() -> None:
    rewards = tensor([[1.0, 0.5, 9.0], [0.0, 0.5, 0.0], [0.5, 0.0, 0.0]])
    mask = tensor([[1, 1, 1], [1, 1, 0], [1, 0, 0]])
    # First position: 1, 0, 0.5 (mean 0.5, sd 0.5); second: twice 0.5; third: one response alone.
    one = 0.5 / (0.5 + 1e-6)
    found = compute_token_wise_advantage(rewards, mask, [3, 3, 3])
    assert_close(rows_of(found), [[one, 0.0, 0.0], [-one, 0.0, 0.0], [0.0, 0.0, 0.0]])


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_group_of_one_and_a_group_of_equals_have_no_advantage(function: object) -> None:
    assert callable(function)
    rewards = tensor([[1.0, 0.5], [0.3, 0.3], [0.3, 0.3]])
    found: Tensor = function(rewards, torch.ones(3, 2), ["alone", "pair", "pair"])[0]
    assert torch.equal(found, torch.zeros(3, 2, dtype=torch.float64))


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_result_has_the_rewards_dtype_and_no_gradient(
    function: object, dtype: torch.dtype
) -> None:
    assert callable(function)
    rewards = torch.tensor([[1.0, 0.5], [0.25, 0.0]], dtype=dtype, requires_grad=True)
    found = function(rewards, torch.ones(2, 2, dtype=torch.bool), np.array([1, 1]))
    assert all(item.dtype == dtype and not item.requires_grad for item in found)
    assert all(item.shape == (2, 2) for item in found)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_groups_are_told_by_the_value_of_any_index(function: object) -> None:
    assert callable(function)
    rewards = tensor([[1.0, 0.5], [0.25, 0.0], [0.5, 0.5], [0.0, 0.75]])
    mask = torch.ones(4, 2)
    indices: list[Index] = [
        torch.tensor([5, 2, 5, 2]),
        np.array(["a", "b", "a", "b"], dtype=object),
        ["a", "b", "a", "b"],
        np.array([9, 8, 9, 8]),
    ]
    found = [function(rewards, mask, index)[0] for index in indices]
    assert all(torch.equal(found[0], item) for item in found)
    assert found[0].abs().sum() > 0


def plain_avg_unique(rewards: Rows, _mask: Rows, index: list[int]) -> Rows:
    """In plain Python, from the formulas."""
    found: Rows = []
    scores = []
    for row in rewards:
        different = sorted({reward for reward in row if reward != 0})
        scores.append(sum(different) / len(different) if different else 0.0)
    for row, own, group in zip(rewards, scores, index, strict=True):
        of_group = [score for score, other in zip(scores, index, strict=True) if other == group]
        if len(of_group) == 1:
            found.append([0.0] * len(row))
            continue
        a = (own - mean(of_group)) / (stdev(of_group) + EPSILON)
        found.append(
            [
                0.0 if r == 0 else (1 - r) * a if a <= 0 else (r - 1) * a if r > 1 else r * a
                for r in row
            ]
        )
    return found


def plain_weighted(rewards: Rows, mask: Rows, index: list[int]) -> Rows:
    sums = [sum(row) for row in rewards]
    found: Rows = []
    for own, kept, group in zip(sums, mask, index, strict=True):
        of_group = [one for one, other in zip(sums, index, strict=True) if other == group]
        low, high = min(of_group), max(of_group)
        if len(of_group) == 1:
            found.append([0.0] * len(kept))
            continue
        weight = 1.0 if low == high else 0.5 + 0.5 * (own - low) / (high - low)
        a = (own - mean(of_group)) / (stdev(of_group) + EPSILON)
        found.append([weight * a * item for item in kept])
    return found


def plain_token_wise(rewards: Rows, mask: Rows, index: list[int]) -> Rows:
    found = [[0.0] * len(row) for row in rewards]
    for at in range(len(rewards[0])):
        for place, group in enumerate(index):
            alive = [
                rewards[other][at]
                for other, its in enumerate(index)
                if its == group and mask[other][at]
            ]
            if mask[place][at] and len(alive) > 1:
                found[place][at] = (rewards[place][at] - mean(alive)) / (stdev(alive) + EPSILON)
    return found


Batch = tuple[Rows, Rows, list[int]]


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    """Rewards of steps, which repeat over their tokens, in responses of different lengths."""
    num_rows, num_tokens = draw(st.integers(1, 7)), draw(st.integers(1, 6))
    reward = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0, 1.25, 1.9, -0.3])
    rewards, masks, index = [], [], []
    for _ in range(num_rows):
        length = draw(st.integers(1, num_tokens))
        row = draw(st.lists(reward, min_size=length, max_size=length))
        rewards.append(row + [0.0] * (num_tokens - length))
        masks.append([1.0] * length + [0.0] * (num_tokens - length))
        index.append(draw(st.integers(0, 2)))
    return rewards, masks, index


PAIRS = list(zip(FUNCTIONS, [plain_avg_unique, plain_weighted, plain_token_wise], strict=True))


@pytest.mark.parametrize(("function", "plain"), PAIRS)
@given(batch=batches())
def test_a_function_is_what_plain_python_makes_of_the_formulas(
    function: object, plain: object, batch: Batch
) -> None:
    assert callable(function)
    assert callable(plain)
    rewards, mask, index = batch
    found = rows_of(function(tensor(rewards), tensor(mask), index))
    assert_close(found, plain(rewards, mask, index))


@pytest.mark.parametrize("function", FUNCTIONS)
@given(batch=batches(), order=st.randoms(use_true_random=False))
def test_the_order_of_responses_and_the_names_of_groups_do_not_matter(
    function: object, batch: Batch, order: object
) -> None:
    assert callable(function)
    rewards, mask, index = batch
    places = list(range(len(rewards)))
    order.shuffle(places)  # type: ignore[attr-defined]
    straight = function(tensor(rewards), tensor(mask), index)[0]
    shuffled = function(
        tensor(rewards)[places], tensor(mask)[places], [f"g{index[place]}" for place in places]
    )[0]
    assert torch.allclose(straight[places], shuffled, rtol=0, atol=1e-9)


@pytest.mark.parametrize("function", FUNCTIONS)
@given(batch=batches())
def test_nothing_off_the_mask_is_trained_and_other_groups_do_not_matter(
    function: object, batch: Batch
) -> None:
    assert callable(function)
    rewards, mask, index = batch
    found: Tensor = function(tensor(rewards), tensor(mask), index)[0]
    assert torch.equal(found[tensor(mask) == 0], torch.zeros_like(found[tensor(mask) == 0]))
    own = [place for place, group in enumerate(index) if group == index[0]]
    alone = function(tensor(rewards)[own], tensor(mask)[own], [0] * len(own))[0]
    assert torch.allclose(found[own], alone, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "function", [compute_weighted_grpo_advantage, compute_token_wise_advantage]
)
@given(batch=batches(), factor=st.sampled_from([0.5, 3.0, 100.0]))
def test_the_scale_of_rewards_does_not_matter_beyond_epsilon(
    function: object, batch: Batch, factor: float
) -> None:
    assert callable(function)
    rewards, mask, index = batch
    found = function(tensor(rewards), tensor(mask), index)[0]
    scaled = function(factor * tensor(rewards), tensor(mask), index)[0]
    assert torch.allclose(found, scaled, rtol=1e-3, atol=1e-6)


def test_outcomes_alone_are_told_from_rewards_of_steps() -> None:
    mask = tensor([[1, 1, 1], [1, 1, 0]])
    assert is_outcome_only(tensor([[0, 0, 1], [0, 1, 0]]), mask)
    assert is_outcome_only(tensor([[0, 0, 1], [0, 0, 0]]), mask)
    assert not is_outcome_only(tensor([[0, 1, 1], [0, 1, 0]]), mask)
    assert not is_outcome_only(tensor([[0, 0, 0], [0, 0, 0]]), mask)
    assert is_outcome_only(tensor([[0, 2, 0], [0, 0, 0]]), tensor([[1, 1, 0], [0, 0, 0]]))
    assert not is_outcome_only(torch.zeros(2, 0), torch.zeros(2, 0))


def test_outcomes_alone_are_warned_about_once(caplog: pytest.LogCaptureFixture) -> None:
    token_advantages.warn_of_outcome_only.cache_clear()
    outcome, mask = tensor([[0, 1.0], [0, 0]]), torch.ones(2, 2)
    with caplog.at_level(logging.WARNING):
        compute_grpo_process_advantage_avg_unique(tensor([[1, 1.0], [0, 0]]), mask, [0, 0])
        compute_weighted_grpo_advantage(outcome, mask, [0, 0])
        assert not caplog.records
        for _ in range(2):
            found, _ = compute_grpo_process_advantage_avg_unique(outcome, mask, [0, 0])
    assert len(caplog.records) == 1
    assert "only the last token of right answers is trained" in caplog.text
    # As it says: 0.5 / (sqrt(0.5) + 1e-6) on the right answer's last token, nothing elsewhere.
    assert_close(found.tolist(), [[0.0, 0.5 / (0.5**0.5 + 1e-6)], [0.0, 0.0]])

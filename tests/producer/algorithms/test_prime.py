"""PRIME: hand-computed, and against plain Python over verl's recipe."""

import math
from statistics import mean

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from producer.algorithms.settings import PrimeSettings
from producer.algorithms.token_advantages import (
    compute_prime_advantage,
    implicit_rewards,
    reward_model_loss,
)

EQUAL = PrimeSettings(prime_process_coef=1.0, prime_outcome_coef=1.0)
Rows = list[list[float]]


def tensor(rows: Rows) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


MASK = tensor([[1, 1, 1], [1, 1, 0]])


def test_an_implicit_reward_is_a_scaled_log_ratio_on_the_mask() -> None:
    own, reference = tensor([[-1, -2, -3], [-1, -1, -9]]), tensor([[-2, -2, -2], [-3, 0, 0]])
    found = implicit_rewards(own.requires_grad_(), reference, MASK, beta=0.5)
    assert found.tolist() == [[0.5, 0.0, -0.5], [1.0, -0.5, 0.0]]
    assert not found.requires_grad


def test_the_reward_model_s_loss_is_cross_entropy_on_the_outcome() -> None:
    own, reference = tensor([[-1, -2, -3], [-1, -1, -9]]), tensor([[-2, -2, -4], [-3, 0, 0]])
    own.requires_grad_()
    reference.requires_grad_()
    # Sums of log ratios 2 and 1; logits 1 and 0.5.
    loss = reward_model_loss(own, reference, MASK, torch.tensor([1, 0]), beta=0.5)
    right, wrong = 1 / (1 + math.exp(-1)), 1 / (1 + math.exp(-0.5))
    assert float(loss.detach()) == pytest.approx(
        -(math.log(right) + math.log(1 - wrong)) / 2, abs=1e-6
    )
    loss.backward()  # type: ignore[no-untyped-call]
    # d loss / d log p = beta (sigmoid - label) / B.
    assert own.grad is not None
    first, second = 0.5 * (right - 1) / 2, 0.5 * wrong / 2
    assert own.grad.tolist() == [
        pytest.approx([first] * 3, abs=1e-9),
        pytest.approx([second, second, 0.0], abs=1e-9),
    ]
    assert reference.grad is None


def test_a_sure_and_wrong_reward_model_has_a_finite_loss() -> None:
    loss = reward_model_loss(
        tensor([[4000.0]]), tensor([[0.0]]), tensor([[1]]), torch.tensor([0.0]), beta=1.0
    )
    assert float(loss) == 4000.0


def test_the_advantage_by_hand() -> None:
    process = tensor([[0.3, 0.0, 0.3], [0.0, 0.2, 9.0]])
    outcomes = torch.tensor([1.0, 0.0], dtype=torch.float64)
    advantages, returns = compute_prime_advantage(
        process,
        outcomes,
        MASK,
        ["a", "a"],
        PrimeSettings(prime_process_coef=1.0, prime_outcome_coef=2.0),
    )
    # Means of a token 0.2 and 0.1, baseline 0.3: 2 r - 0.3. Outcomes: 2 r - 1 at the end.
    rewards = [[0.3, -0.3, 0.3 + 2.0], [-0.3, 0.1 - 2.0]]
    expected = [[2.3, 2.0, 2.3], [-2.2, -1.9, 0.0]]
    assert expected[0][0] == pytest.approx(sum(rewards[0]))
    for found, hand in zip(returns.tolist(), expected, strict=True):
        assert found == pytest.approx(hand, abs=1e-6)
    values = [2.3, 2.0, 2.3, -2.2, -1.9]
    center = mean(values)
    variance = sum((value - center) ** 2 for value in values) / 4
    scale = 1 / math.sqrt(variance + 1e-8)
    assert advantages[MASK > 0].tolist() == pytest.approx(
        [(value - center) * scale for value in values], abs=1e-6
    )
    assert advantages[1, 2] == 0


@pytest.mark.parametrize("num_tokens", [0, 3])
def test_responses_without_a_token_have_no_advantage(num_tokens: int) -> None:
    nothing = torch.zeros(2, num_tokens)
    found = compute_prime_advantage(nothing, torch.tensor([1.0, 0.0]), nothing, [0, 0], EQUAL)
    assert all(torch.equal(item, nothing) for item in found)


def test_the_outcome_is_on_the_last_token_of_the_mask_whatever_its_holes() -> None:
    mask = tensor([[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
    outcomes = torch.tensor([1.0, 0.5, 1.0], dtype=torch.float64)
    _, returns = compute_prime_advantage(torch.zeros_like(mask), outcomes, mask, [0, 1, 2], EQUAL)
    assert returns.tolist() == [[1.0, 0.0, 1.0, 0.0], [0.0, 0.5, 0.0, 0.0], [0.0] * 4]


def plain_returns(
    process: Rows, outcomes: list[float], lengths: list[int], index: list[int]
) -> Rows:
    """The recipe in plain Python, with weights of 1."""
    found: Rows = []
    for row, outcome, length, group in zip(process, outcomes, lengths, index, strict=True):
        own = [at for at, other in enumerate(index) if other == group]
        kept, last = list(row[:length]), outcome
        if len(own) > 1:
            n = len(own)
            base = sum(sum(process[at][: lengths[at]]) / lengths[at] for at in own) / (n - 1)
            kept = [reward * n / (n - 1) - base for reward in kept]
            last = outcome * n / (n - 1) - sum(outcomes[at] for at in own) / (n - 1)
        kept[-1] += last
        found.append([sum(kept[at:]) for at in range(length)] + [0.0] * (len(row) - length))
    return found


@given(st.data())
def test_returns_are_the_recipe_s_for_groups_of_any_size_and_order(data: st.DataObject) -> None:
    num_rows, num_tokens = data.draw(st.integers(2, 7)), data.draw(st.integers(1, 5))
    value = st.floats(-3, 3, width=32)
    process = [
        data.draw(st.lists(value, min_size=num_tokens, max_size=num_tokens))
        for _ in range(num_rows)
    ]
    outcomes = [float(data.draw(st.booleans())) for _ in range(num_rows)]
    lengths = [data.draw(st.integers(1, num_tokens)) for _ in range(num_rows)]
    index = [data.draw(st.integers(0, 2)) for _ in range(num_rows)]
    mask = (torch.arange(num_tokens) < torch.tensor(lengths)[:, None]).double()
    _, returns = compute_prime_advantage(
        tensor(process), torch.tensor(outcomes).double(), mask, index, EQUAL
    )
    expected = plain_returns(process, outcomes, lengths, index)
    for found, plain in zip(returns.tolist(), expected, strict=True):
        assert found == pytest.approx(plain, abs=1e-6)

"""Hand-computed losses: ratios 2, 1 and 0.5 with advantages of both signs."""

import math
from typing import get_args

import pytest
import torch
from torch import Tensor

from producer.algorithms import advantages
from producer.algorithms.losses import (
    AGGREGATIONS,
    KL_ESTIMATORS,
    LOSSES,
    BatchSize,
    kl_penalized,
    kl_sample_train,
    truncated_weights,
)
from producer.algorithms.names import CLIPPED, AdvantageName, AggregationName, KlName, LossName
from producer.algorithms.ratio_bounds import Clip
from tests.support.rounding import rounding_of_sum

OLD = torch.log(torch.tensor([0.2, 0.5, 0.8, 0.2]))
NEW = torch.log(torch.tensor([0.4, 0.5, 0.4, 0.4]))
ADVANTAGES = torch.tensor([1.0, -2.0, 3.0, -1.0])


def policy_loss(
    name: LossName,
    logprobs_N: Tensor,
    old_N: Tensor,
    advantages_N: Tensor,
    clip: Clip | None = None,
) -> Tensor:
    """Of sequences of one token each, summed."""
    loss_BT = LOSSES[name](
        logprobs_N[:, None],
        old_N[:, None],
        advantages_N[:, None],
        torch.ones(len(logprobs_N), 1, dtype=torch.bool),
        clip or Clip(),
    )
    return loss_BT.sum()


def loss_and_gradient(name: LossName) -> tuple[float, list[float]]:
    logprobs = NEW.clone().requires_grad_()
    loss = policy_loss(name, logprobs, OLD, ADVANTAGES)
    loss.backward()  # type: ignore[no-untyped-call]
    assert logprobs.grad is not None
    return float(loss.detach()), logprobs.grad.tolist()


def test_importance_sampling_sums_ratio_times_advantage() -> None:
    loss, gradient = loss_and_gradient("importance_sampling")
    # -(2 * 1 + 1 * -2 + 0.5 * 3 + 2 * -1); d ratio / d log p = ratio
    assert loss == pytest.approx(0.5)
    assert gradient == pytest.approx([-2.0, 2.0, -1.5, 2.0])


def test_ppo_takes_the_smaller_of_clipped_and_unclipped() -> None:
    loss, gradient = loss_and_gradient("ppo")
    # min(2, 1.2) + min(-2, -2) + min(1.5, 2.4) + min(-2, -1.2); no gradient where the clipped one
    # is smaller
    assert loss == pytest.approx(-(1.2 - 2.0 + 1.5 - 2.0))
    assert gradient == pytest.approx([0.0, 2.0, -1.5, 2.0])


def test_cispo_weighs_log_probs_by_a_clipped_ratio_without_gradient() -> None:
    loss, gradient = loss_and_gradient("cispo")
    expected = (
        1.2 * math.log(0.4) * 1
        + 1.0 * math.log(0.5) * -2
        + 0.8 * math.log(0.4) * 3
        + 1.2 * math.log(0.4) * -1
    )
    assert loss == pytest.approx(-expected)
    assert gradient == pytest.approx([-1.2, 2.0, -2.4, 1.2])


@pytest.mark.parametrize("name", get_args(LossName))
def test_on_policy_every_loss_has_the_gradient_of_reinforce(name: LossName) -> None:
    logprobs = OLD.clone().requires_grad_()
    policy_loss(name, logprobs, OLD, ADVANTAGES).backward()  # type: ignore[no-untyped-call]
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == pytest.approx((-ADVANTAGES).tolist())


@pytest.mark.parametrize("name", get_args(LossName))
def test_a_loss_is_a_sum_so_parts_add_up(name: LossName) -> None:
    whole = policy_loss(name, NEW, OLD, ADVANTAGES)
    parts = sum(
        policy_loss(name, NEW[part], OLD[part], ADVANTAGES[part])
        for part in (slice(0, 1), slice(1, 4))
    )
    terms = [
        float(policy_loss(name, NEW[at : at + 1], OLD[at : at + 1], ADVANTAGES[at : at + 1]))
        for at in range(4)
    ]
    assert float(whole) == pytest.approx(float(parts), rel=0, abs=rounding_of_sum(terms))


def test_kl_estimates_are_the_mean_log_ratio_and_half_its_mean_square() -> None:
    estimates = kl_sample_train(torch.tensor([-1.0, -2.0]), torch.tensor([-1.5, -1.0]))
    assert estimates.v1 == pytest.approx((0.5 - 1.0) / 2)
    assert estimates.v2 == pytest.approx(0.5 * (0.25 + 1.0) / 2)


def test_the_kl_penalty_moves_advantage_to_the_tokens_that_diverged_least() -> None:
    sampled, base = torch.tensor([-1.0, -1.0, -3.0]), torch.tensor([-2.0, -1.0, -2.0])
    # log ratios 1, 0, -1 with mean 0
    penalized = kl_penalized(torch.tensor([0.5, 0.5, 0.5]), sampled - base, 0.1)
    assert penalized.tolist() == pytest.approx([0.4, 0.5, 0.6])


def test_every_name_of_the_configuration_has_a_function_and_every_function_a_name() -> None:
    assert set(LOSSES) == set(get_args(LossName))
    assert set(AGGREGATIONS) == set(get_args(AggregationName))
    assert set(KL_ESTIMATORS) == set(get_args(KlName))
    # gae and prime are of tokens: token_advantages.gae and prime.compute_prime_advantage.
    assert set(advantages.ADVANTAGES) == set(get_args(AdvantageName))
    assert set(CLIPPED) <= set(LOSSES)


def test_the_dual_clip_bounds_the_loss_of_a_negative_advantage() -> None:
    old, new = torch.zeros(3), torch.log(torch.tensor([5.0, 1.1, 5.0]))
    of_signs = torch.tensor([-1.0, -1.0, 1.0])
    loss = policy_loss("ppo", new, old, of_signs, Clip(0.2, 0.2, dual=3.0))
    # 3 rather than 5; 1.1 is below; a positive advantage keeps its own clip, 1.2
    assert float(loss) == pytest.approx(3.0 + 1.1 - 1.2)


def test_clip_higher_lets_likelier_tokens_grow_further() -> None:
    old, new = torch.zeros(1), torch.log(torch.tensor([1.25]))
    for high, expected in [(0.2, -1.2), (0.28, -1.25)]:
        loss = policy_loss("ppo", new, old, torch.ones(1), Clip(0.2, high))
        assert float(loss) == pytest.approx(expected)


def test_gspo_has_one_ratio_per_sequence_its_tokens_geometric_mean() -> None:
    ratios = torch.tensor([[4.0, 1.0], [0.25, 9.0]])
    mask = torch.tensor([[True, True], [True, False]])
    logprobs = torch.log(ratios).requires_grad_()
    of_rows = torch.tensor([[1.0, 1.0], [-2.0, -2.0]])
    loss_BT = LOSSES["gspo"](logprobs, torch.zeros(2, 2), of_rows, mask, Clip(0.9, 2.0))
    # sqrt(4 * 1) = 2; the token off the mask does not count: 0.25
    assert loss_BT[mask].tolist() == pytest.approx([-2.0, -2.0, 0.5])
    loss_BT[mask].sum().backward()  # type: ignore[no-untyped-call]
    assert logprobs.grad is not None
    assert logprobs.grad[mask].tolist() == pytest.approx([-2.0, -2.0, 0.5])


def test_micro_batches_add_up_under_every_aggregation() -> None:
    loss = torch.tensor([[1.0, 2.0, 6.0], [4.0, 99.0, 99.0]])
    mask = torch.tensor([[True, True, True], [True, False, False]])
    size = BatchSize(num_tokens=4, num_sequences=2)
    expected = {
        "sum": 13.0,
        "token_mean": 13.0 / 4,
        "sequence_mean": (3.0 + 4.0) / 2,
        "sequence_sum": (9.0 + 4.0) / 2,
    }
    for name, aggregate in AGGREGATIONS.items():
        assert float(aggregate(loss, mask, size)) == pytest.approx(expected[name])
        parts = [aggregate(loss[row : row + 1], mask[row : row + 1], size) for row in (0, 1)]
        assert float(sum(parts)) == pytest.approx(expected[name])


def test_nothing_off_the_mask_reaches_a_loss() -> None:
    mask = torch.tensor([[True, False]])
    for name, loss in LOSSES.items():
        values = []
        for beside in (0.0, float("nan")):
            row = torch.tensor([[-1.0, beside]])
            loss_BT = loss(row, torch.tensor([[-1.5, beside]]), row, mask, Clip())
            values += [
                float(aggregate(loss_BT, mask, BatchSize(1, 1)))
                for aggregate in AGGREGATIONS.values()
            ]
        assert values[: len(AGGREGATIONS)] == values[len(AGGREGATIONS) :], name


def test_kl_estimators_of_one_token() -> None:
    # log p - log q = 0.5; k3 = exp(-0.5) + 0.5 - 1
    estimates = {
        name: float(estimate(torch.tensor(-1.0), torch.tensor(-1.5)))
        for name, estimate in KL_ESTIMATORS.items()
    }
    assert estimates == pytest.approx({"k1": 0.5, "abs": 0.5, "k2": 0.125, "k3": 0.1065307})


def test_importance_weights_are_ratios_up_to_the_cap_and_have_no_gradient() -> None:
    """By hand: 0.4 / 0.2, 0.5 / 0.5, 0.4 / 0.8, 0.4 / 0.2, with a cap of 1.5."""
    weights = truncated_weights(NEW.clone().requires_grad_(), OLD, 1.5)
    assert weights.tolist() == pytest.approx([1.5, 1.0, 0.5, 1.5])
    assert not weights.requires_grad

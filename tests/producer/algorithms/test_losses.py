"""Hand-computed losses: ratios 2, 1 and 0.5 with advantages of both signs."""

import math
from typing import get_args

import pytest
import torch

from producer.algorithms.kl import kl_penalized, kl_sample_train
from producer.algorithms.losses import LossName, policy_loss
from tests.support.rounding import rounding_of_sum

OLD = torch.log(torch.tensor([0.2, 0.5, 0.8, 0.2]))
NEW = torch.log(torch.tensor([0.4, 0.5, 0.4, 0.4]))
ADVANTAGES = torch.tensor([1.0, -2.0, 3.0, -1.0])


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
        float(policy_loss(name, *(values[at : at + 1] for values in (NEW, OLD, ADVANTAGES))))
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
    penalized = kl_penalized(torch.tensor([0.5, 0.5, 0.5]), sampled, base, 0.1)
    assert penalized.tolist() == pytest.approx([0.4, 0.5, 0.6])

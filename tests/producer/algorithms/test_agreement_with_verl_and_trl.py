"""Every algorithm that verl 0.9.1 or TRL 1.16.0 has: values within 1e-6, gradients within 1e-5.

Batches are random, in float64, with clipping in force on both sides. Both libraries are of the
extra `oracles`, which `make install` installs: without them these tests fail.
"""

import importlib.metadata
from collections.abc import Callable
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from producer.algorithms import advantages, token_advantages
from producer.algorithms.advantages import ADVANTAGES, Rewards
from producer.algorithms.losses import (
    AGGREGATIONS,
    KL_ESTIMATORS,
    LOSSES,
    BatchSize,
    kl_penalized,
    truncated_weights,
    value_loss,
)
from producer.algorithms.names import AdvantageName, AggregationName, KlName, LossName
from producer.algorithms.ratio_bounds import Clip
from tests.oracles import trl_loss, verl_core

from .random_batches import SEEDS, Batch, random_batch

VALUE, GRADIENT = 1e-6, 1e-5
VERL_AGGREGATIONS: dict[AggregationName, str] = {
    "sum": "token-sum",
    "token_mean": "token-mean",
    "sequence_mean": "seq-mean-token-mean",
    "sequence_sum": "seq-mean-token-sum",
}
CLIPS = [Clip(0.2, 0.2), Clip(0.2, 0.28), Clip(0.1, 0.4, dual=1.5), Clip(1.0, 3.0, dual=5.0)]
Loss = Callable[[Tensor], Tensor]


@pytest.fixture(scope="module")
def verl() -> ModuleType:
    return verl_core.load()


def test_the_oracles_are_the_releases_that_the_documentation_names() -> None:
    assert importlib.metadata.version("verl") == "0.9.1"
    assert importlib.metadata.version("trl") == "1.16.0"


def size_of(batch: Batch) -> BatchSize:
    return BatchSize(int(batch.mask_BT.sum()), int(batch.mask_BT.any(dim=1).sum()))


def assert_agree(ours: Loss, theirs: Loss, logprobs_BT: Tensor) -> None:
    values, gradients = [], []
    for loss_of in (ours, theirs):
        own = logprobs_BT.detach().clone().requires_grad_()
        loss = loss_of(own)
        (gradient,) = torch.autograd.grad(loss, own)
        values.append(float(loss.detach()))
        gradients.append(gradient)
    assert values[0] == pytest.approx(values[1], rel=0, abs=VALUE)
    assert torch.allclose(gradients[0], gradients[1], rtol=0, atol=GRADIENT)


def our_loss(
    batch: Batch,
    name: LossName,
    clip: Clip,
    aggregation: AggregationName,
    weights_BT: float | Tensor = 1.0,
) -> Callable[[Tensor], Tensor]:
    def loss(logprobs_BT: Tensor) -> Tensor:
        loss_BT = LOSSES[name](logprobs_BT, batch.old_BT, batch.advantages_BT, batch.mask_BT, clip)
        loss_BT = loss_BT * weights_BT
        return AGGREGATIONS[aggregation](loss_BT, batch.mask_BT, size_of(batch))

    return loss


def verl_loss(
    verl: ModuleType,
    batch: Batch,
    function: str,
    clip: Clip,
    aggregation: AggregationName,
    weights_BT: Tensor | None = None,
) -> Callable[[Tensor], Tensor]:
    from verl.workers.config import ActorConfig

    config = ActorConfig(
        strategy="fsdp",
        rollout_n=1,
        ppo_micro_batch_size_per_gpu=1,
        clip_ratio_low=clip.low,
        clip_ratio_high=clip.high,
        # verl cannot turn the dual clip off; no ratio of these batches reaches this one.
        clip_ratio_c=clip.dual or 1e9,
    )

    def loss(logprobs_BT: Tensor) -> Tensor:
        value: Tensor = getattr(verl, function)(
            batch.old_BT,
            logprobs_BT,
            batch.advantages_BT,
            batch.mask_BT.double(),
            loss_agg_mode=VERL_AGGREGATIONS[aggregation],
            config=config,
            rollout_is_weights=weights_BT,
        )[0]
        return value

    return loss


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("ppo", "compute_policy_loss_vanilla"),
        ("cispo", "compute_policy_loss_cispo"),
        ("gspo", "compute_policy_loss_gspo"),
        ("reinforce", "compute_policy_loss_gpg"),
        ("reinforce", "compute_policy_loss_reinforce"),
    ],
)
def test_a_loss_is_verl_s_under_every_aggregation(
    verl: ModuleType, aggregation: AggregationName, name: LossName, function: str
) -> None:
    for seed, clip in product(SEEDS, CLIPS):
        batch = random_batch(seed)
        assert_agree(
            our_loss(batch, name, clip, aggregation),
            verl_loss(verl, batch, function, clip, aggregation),
            batch.logprobs_BT,
        )


@pytest.mark.parametrize("cap", [1.0, 2.0, 1e12])
@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("ppo", "compute_policy_loss_vanilla"),
        ("cispo", "compute_policy_loss_cispo"),
        ("gspo", "compute_policy_loss_gspo"),
        ("reinforce", "compute_policy_loss_gpg"),
    ],
)
def test_truncated_importance_weights_are_verl_s(
    verl: ModuleType, name: LossName, function: str, cap: float
) -> None:
    """The mismatch of a sampler, weighted by token (`rollout_is`) in each loss that verl has.

    The learner's log-probs before the update are `old`, the sampler's `reference`.
    """
    corrections = verl_core.load("rollout_corr_helper")
    clip = Clip(0.2, 0.28)
    # Log ratios up to about 50 nats: verl's and ours are limited to 20 before the exponential.
    for seed, spread in product(SEEDS, (1.0, 15.0)):
        batch = random_batch(seed, spread=spread)
        theirs_BT, _ = corrections.compute_rollout_correction_weights(
            batch.old_BT - batch.reference_BT,
            batch.mask_BT.double(),
            rollout_is="token",
            rollout_is_threshold=cap,
        )
        ours_BT = truncated_weights(batch.old_BT, batch.reference_BT, cap)
        assert torch.allclose(ours_BT[batch.mask_BT], theirs_BT[batch.mask_BT], rtol=1e-9, atol=0)
        assert (ours_BT.max() > 4) == (cap > 4), "the cap is in force"
        if spread == 1.0:
            assert_agree(
                our_loss(batch, name, clip, "token_mean", ours_BT),
                verl_loss(verl, batch, function, clip, "token_mean", theirs_BT),
                batch.logprobs_BT,
            )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("name", "aggregation", "clip", "theirs"),
    [
        ("ppo", "sequence_mean", Clip(0.2, 0.28), {"loss_type": "grpo"}),
        ("ppo", "token_mean", Clip(0.2, 0.28), {"loss_type": "bnpo"}),
        ("ppo", "token_mean", Clip(0.2, 0.28), {"loss_type": "dapo"}),
        ("ppo", "token_mean", Clip(0.2, 0.28, 3.0), {"loss_type": "dapo", "delta": 3.0}),
        ("ppo", "sequence_sum", Clip(0.2, 0.2), {"loss_type": "luspo"}),
        ("gspo", "sequence_mean", Clip(0.1, 0.2), {"loss_type": "grpo", "level": "sequence"}),
        # TRL's bound of cispo is the ratio itself, and there is none from below.
        ("cispo", "token_mean", Clip(1.0, 0.5), {"loss_type": "cispo", "high": 1.5}),
    ],
)
def test_a_loss_is_trl_s(
    seed: int, name: LossName, aggregation: AggregationName, clip: Clip, theirs: dict[str, Any]
) -> None:
    batch = random_batch(seed)
    options = {"epsilon_low": clip.low, "epsilon_high": theirs.get("high", clip.high)} | {
        key: value for key, value in theirs.items() if key != "high"
    }
    assert_agree(
        our_loss(batch, name, clip, aggregation),
        lambda logprobs_BT: trl_loss.grpo_loss(
            logprobs_BT, batch.old_BT, batch.advantages_B, batch.mask_BT, **options
        ),
        batch.logprobs_BT,
    )


def test_the_batches_clip_on_both_sides() -> None:
    """Otherwise agreement would say nothing about clipping."""
    for seed in SEEDS:
        batch = random_batch(seed)
        ratios = torch.exp(batch.logprobs_BT - batch.old_BT)[batch.mask_BT]
        signs = torch.sign(batch.advantages_BT)[batch.mask_BT]
        for sign in (-1, 1):
            assert (ratios[signs == sign] < 0.8).any() or not (signs == sign).any()
            assert (ratios[signs == sign] > 1.5).any() or not (signs == sign).any()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", KL_ESTIMATORS)
@pytest.mark.parametrize("spread", [1.0, 15.0])
def test_a_kl_estimate_is_verl_s(verl: ModuleType, seed: int, name: KlName, spread: float) -> None:
    """With log ratios of 15 nats k3 is bounded."""
    batch = random_batch(seed, spread=spread)
    assert_agree(
        lambda own: KL_ESTIMATORS[name](own, batch.reference_BT).sum(),
        lambda own: verl.kl_penalty(own, batch.reference_BT, name).sum(),
        batch.logprobs_BT,
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_k3_as_a_loss_is_trl_s(seed: int) -> None:
    """TRL's has no bounds: on log ratios that do not reach verl's."""
    batch = random_batch(seed, spread=0.4)

    def ours(logprobs_BT: Tensor) -> Tensor:
        kl_BT = KL_ESTIMATORS["k3"](logprobs_BT, batch.reference_BT)
        return our_loss(batch, "ppo", Clip(), "token_mean")(logprobs_BT) + 0.1 * AGGREGATIONS[
            "token_mean"
        ](kl_BT, batch.mask_BT, size_of(batch))

    assert_agree(
        ours,
        lambda logprobs_BT: trl_loss.grpo_loss(
            logprobs_BT,
            batch.old_BT,
            batch.advantages_B,
            batch.mask_BT,
            loss_type="dapo",
            beta=0.1,
            reference_BT=batch.reference_BT,
        ),
        batch.logprobs_BT,
    )


def random_rewards(seed: int, *, alone: bool = True) -> tuple[Rewards, Tensor, Tensor, np.ndarray]:
    """Rewards with zeros and ties, in groups of different sizes whose rollouts are interleaved.

    Also verl's form: the reward on the last completion token of [B, T], its mask and the index.
    """
    draw = np.random.default_rng(seed)
    groups = np.array([0, 1, 2, 0, 1, 1, 2, 0, 2, 2, 1] + [3] * alone)
    scores = draw.choice([0.0, 1.0, 0.5, -0.3], len(groups)) + draw.choice([0, 1]) * draw.normal(
        size=len(groups)
    )
    lengths = draw.integers(1, 7, len(groups))
    mask_BT = torch.arange(7) < torch.tensor(lengths)[:, None]
    rewards_BT = torch.zeros(mask_BT.shape, dtype=torch.float64)
    rewards_BT[torch.arange(len(groups)), torch.tensor(lengths) - 1] = torch.tensor(scores)
    rewards = Rewards(scores.tolist(), groups.tolist(), lengths.tolist())
    return rewards, rewards_BT, mask_BT.double(), groups


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("name", "function", "options", "alone"),
    [
        ("grpo", "compute_grpo_outcome_advantage", {}, True),
        ("dr_grpo", "compute_grpo_outcome_advantage", {"norm_adv_by_std_in_grpo": False}, True),
        (
            "mean_centered",
            "compute_grpo_outcome_advantage",
            {"norm_adv_by_std_in_grpo": False},
            False,
        ),
        ("rloo", "compute_rloo_outcome_advantage", {}, True),
        ("rloo", "compute_rloo_vectorized_outcome_advantage", {}, False),
        ("opo", "compute_opo_outcome_advantage", {}, True),
        ("gpg", "compute_gpg_outcome_advantage", {}, True),
        (
            "reinforce_plus_plus_baseline",
            "compute_reinforce_plus_plus_baseline_outcome_advantage",
            {},
            True,
        ),
        ("grpo_passk", "compute_grpo_passk_outcome_advantage", {"config": {}}, False),
        (
            "grpo_passk_no_std",
            "compute_grpo_passk_outcome_advantage",
            {"config": {"norm_adv_by_std_in_grpo": False}},
            False,
        ),
    ],
)
def test_an_advantage_is_verl_s(
    verl: ModuleType,
    seed: int,
    name: AdvantageName,
    function: str,
    options: dict[str, Any],
    alone: bool,
) -> None:
    rewards, rewards_BT, mask_BT, groups = random_rewards(seed, alone=alone)
    theirs_BT, _ = getattr(verl, function)(
        token_level_rewards=rewards_BT, response_mask=mask_BT, index=groups, **options
    )
    # The first token is a completion token of every rollout.
    assert ADVANTAGES[name].compute(rewards) == pytest.approx(
        theirs_BT[:, 0].tolist(), rel=0, abs=VALUE
    )


class _Gamma:
    def __init__(self, gamma: float) -> None:
        self.gamma = gamma


@pytest.mark.parametrize("seed", SEEDS)
def test_reinforce_plus_plus_is_verl_s_with_and_without_discount(
    verl: ModuleType, seed: int
) -> None:
    rewards, rewards_BT, mask_BT, _ = random_rewards(seed)
    for gamma in (1.0, 0.9):
        theirs_BT, returns_BT = verl.compute_reinforce_plus_plus_outcome_advantage(
            token_level_rewards=rewards_BT, response_mask=mask_BT, config=_Gamma(gamma)
        )
        ours_BT = token_advantages.discounted_returns(rewards_BT, mask_BT, gamma=gamma)
        assert torch.allclose(ours_BT, returns_BT, rtol=0, atol=VALUE)
        whitened_BT = token_advantages.whitened(ours_BT, mask_BT) * mask_BT
        assert torch.allclose(whitened_BT, theirs_BT, rtol=0, atol=VALUE)
        if gamma == 1.0:
            assert ADVANTAGES["reinforce_plus_plus"].compute(rewards) == pytest.approx(
                theirs_BT[:, 0].tolist(), rel=0, abs=VALUE
            )


@pytest.mark.parametrize("seed", SEEDS)
def test_remax_is_verl_s(verl: ModuleType, seed: int) -> None:
    rewards, rewards_BT, mask_BT, _ = random_rewards(seed)
    greedy = np.random.default_rng(seed).normal(size=len(rewards.rewards_B))
    theirs_BT, _ = verl.compute_remax_outcome_advantage(
        token_level_rewards=rewards_BT,
        reward_baselines=torch.tensor(greedy),
        response_mask=mask_BT,
    )
    ours = advantages.remax(
        Rewards(rewards.rewards_B, rewards.groups_B, rewards.num_tokens_B, greedy.tolist())
    )
    assert ours == pytest.approx(theirs_BT[:, 0].tolist(), rel=0, abs=VALUE)


@pytest.mark.parametrize("seed", SEEDS)
def test_gae_and_the_value_loss_are_verl_s(verl: ModuleType, seed: int) -> None:
    batch = random_batch(seed)
    mask_BT = batch.mask_BT.double()
    rewards_BT, values_BT = batch.reference_BT * mask_BT, batch.old_BT
    theirs_BT, returns_BT = verl.compute_gae_advantage_return(
        rewards_BT, values_BT, mask_BT, gamma=0.97, lam=0.9
    )
    ours = token_advantages.gae(rewards_BT, values_BT, mask_BT, gamma=0.97, lam=0.9)
    on_mask = batch.mask_BT
    assert torch.allclose(ours.advantages_BT[on_mask], theirs_BT[on_mask], rtol=0, atol=VALUE)
    assert torch.allclose(ours.returns_BT[on_mask], returns_BT[on_mask], rtol=0, atol=VALUE)
    assert_agree(
        lambda own: AGGREGATIONS["token_mean"](
            value_loss(own, values_BT, returns_BT, clip=0.2), batch.mask_BT, size_of(batch)
        ),
        lambda own: verl.compute_value_loss(own, returns_BT, values_BT, mask_BT, 0.2)[0],
        batch.logprobs_BT,
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_k1_in_the_reward_moves_advantages_as_verl_s_rewards_do_but_for_the_mean(
    verl: ModuleType, seed: int
) -> None:
    """In verl coef * kl leaves each token's reward; tinker-cookbook adds its mean back."""
    batch = random_batch(seed)
    sampled, base = batch.old_BT[batch.mask_BT], batch.reference_BT[batch.mask_BT]
    theirs = verl.compute_rewards(torch.zeros_like(sampled), sampled, base, 0.3)
    ours = kl_penalized(torch.zeros_like(sampled), sampled - base, 0.3)
    assert torch.allclose(ours, theirs - theirs.mean(), rtol=0, atol=VALUE)

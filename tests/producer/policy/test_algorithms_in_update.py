"""Losses, aggregations and KL terms in force in an update of the network."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from producer.algorithms.names import AggregationName, LossName
from producer.policy.learner import Trajectory, UpdateResult
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.loading import load_network
from producer.policy.torch_policy.network import Network
from tests.support.update_settings import changed

from .conftest import SETTINGS, ClickOnly, Play, are_equal, trajectory, weights


def test_measured_trajectories_count_for_kl_and_entropy_and_change_no_bit(
    base_folder: Path, batch: list[Trajectory]
) -> None:
    """As in tinker-cookbook, groups of one reward are measured too."""
    settings = changed(SETTINGS, num_substeps=2)
    after, results = [], []
    for trajectories in (
        batch[:2],
        [*batch[:2], *(replace(item, is_trained=False) for item in batch[2:])],
    ):
        network = load_network(str(base_folder), lora_rank=4, seed=1)
        results.append(InProcessPolicy(network, ClickOnly()).update(trajectories, settings))
        after.append(weights(network))
    alone, with_others = results
    assert are_equal(after[0], after[1])
    assert (with_others.loss, with_others.num_tokens) == (alone.loss, alone.num_tokens)
    assert with_others.num_measured_tokens > alone.num_measured_tokens == alone.num_tokens
    logprobs = [
        logprob
        for item in batch
        for turn in item.turns
        for logprob in turn.tokens.completion_logprobs
    ]
    assert with_others.num_measured_tokens == len(logprobs)
    assert with_others.entropy == pytest.approx(-sum(logprobs) / len(logprobs), rel=1e-5)
    assert with_others.kl_sample_train_v2 != alone.kl_sample_train_v2


def test_a_step_on_which_nothing_is_trained_is_measured_all_the_same(
    policy: InProcessPolicy, network: Network, batch: list[Trajectory]
) -> None:
    before = weights(network)
    result = policy.update([replace(item, is_trained=False) for item in batch], SETTINGS)
    assert are_equal(weights(network), before)
    assert (result.num_tokens, result.loss, result.gradient_norm) == (0, 0.0, 0.0)
    assert result.num_measured_tokens > 0
    assert not math.isnan(result.kl_sample_train_v1)


@pytest.mark.parametrize("loss", ["importance_sampling", "ppo", "gspo"])
def test_aggregation_scales_the_same_losses(
    policy: InProcessPolicy, batch: list[Trajectory], loss: LossName
) -> None:
    def update(aggregation: AggregationName) -> UpdateResult:
        settings = changed(SETTINGS, loss_fn=loss, loss_aggregation=aggregation, learning_rate=0.0)
        return policy.update(batch, settings)

    total, token_mean, sequence_sum = update("sum"), update("token_mean"), update("sequence_sum")
    assert token_mean.loss * total.num_tokens == pytest.approx(total.loss, rel=1e-4)
    assert token_mean.gradient_norm * total.num_tokens == pytest.approx(
        total.gradient_norm, rel=1e-4
    )
    assert sequence_sum.loss * len(batch) == pytest.approx(total.loss, rel=1e-4)
    # On policy every ratio is 1: a sequence's mean is minus its advantage, and these sum to 0.
    assert update("sequence_mean").loss == pytest.approx(0.0, abs=1e-3)
    for item in (total, token_mean, sequence_sum):
        assert item.loss_per_token == pytest.approx(total.loss / total.num_tokens, rel=1e-4)


def test_the_loss_of_a_mean_is_the_mean_over_substeps(
    policy: InProcessPolicy, batch: list[Trajectory]
) -> None:
    settings = changed(SETTINGS, learning_rate=0.0, num_substeps=2)
    twice = policy.update(batch, changed(settings, loss_aggregation="sequence_sum"))
    whole = policy.update(batch, settings)
    # Two substeps of two sequences each: half of each sum, and the mean of both.
    assert twice.loss == pytest.approx(whole.loss / 4, rel=1e-4)


def test_a_clipping_bound_and_a_dual_clip_reach_the_loss(
    policy: InProcessPolicy, play: Play
) -> None:
    good, bad = [
        trajectory(play(episode, 2), advantage) for episode, advantage in ((1, 1.0), (2, -1.0))
    ]
    policy.update([good, bad], changed(SETTINGS, learning_rate=0.1))

    def gradient(one: Trajectory, **changes: object) -> float:
        settings = changed(SETTINGS, loss_fn="ppo", learning_rate=0.0, **changes)
        return policy.update([one], settings).gradient_norm

    assert gradient(good, clip_ratio_high=1e6) > 0
    assert gradient(good, clip_ratio_high=1e-6, clip_ratio_low=1e-6) < gradient(
        good, clip_ratio_high=1e6
    )
    measured = policy.update([bad], changed(SETTINGS, loss_fn="ppo", learning_rate=0.0))
    capped = policy.update(
        [bad], changed(SETTINGS, loss_fn="ppo", learning_rate=0.0, dual_clip=1e-3)
    )
    assert capped.loss == pytest.approx(1e-3 * capped.num_tokens, rel=1e-4)
    assert measured.loss > capped.loss


def resampled(one: Trajectory, ratio: float) -> Trajectory:
    """The trajectory as a sampler records it whose probabilities are the policy's / `ratio`."""
    turns = []
    for turn in one.turns:
        shifted = [logprob - math.log(ratio) for logprob in turn.tokens.completion_logprobs]
        tokens = replace(turn.tokens, completion_logprobs=tuple(shifted))
        turns.append(replace(turn, completion=replace(turn.completion, tokens=tokens)))
    return replace(one, turns=tuple(turns))


def test_importance_weights_are_of_the_policy_before_the_update_and_truncated_at_the_cap(
    policy: InProcessPolicy, batch: list[Trajectory]
) -> None:
    one, other = batch[0], batch[1]
    off_policy = [resampled(one, 3.0), resampled(other, 0.5)]
    for settings in (SETTINGS, changed(SETTINGS, loss_fn="ppo")):
        still = changed(settings, learning_rate=0.0, importance_cap=2.0)
        result = policy.update(off_policy, still)
        # Advantages 1 and -1; the ratios to the policy before the update are 1.
        assert result.loss == pytest.approx(
            -2.0 * one.num_tokens + 0.5 * other.num_tokens, rel=1e-4
        )
        assert result.capped_share == one.num_tokens / (one.num_tokens + other.num_tokens)
        assert not result.clip_fraction
        assert policy.update(batch[:2], still).capped_share == 0
        free = policy.update(off_policy, changed(settings, learning_rate=0.0))
        assert free.capped_share is None
        assert abs(free.loss - result.loss) > 0.1
    # A later pass is compared with the policy before the update, not with the one just trained.
    passes = changed(SETTINGS, loss_fn="ppo", ppo_epochs=2, importance_cap=2.0, learning_rate=0.1)
    bounds = {"clip_ratio_low": 1e-3, "clip_ratio_high": 1e-3}
    moved = policy.update(off_policy, changed(passes, **bounds))
    assert moved.clip_fraction is not None
    # The first pass clips nothing, so at most the second's half of the tokens is.
    assert 0 < moved.clip_fraction <= 0.5


def test_weights_below_the_cap_give_the_gradient_of_importance_sampling(
    policy: InProcessPolicy, batch: list[Trajectory]
) -> None:
    """exp(now - before) * exp(before - sampled) = exp(now - sampled)."""
    off_policy = [resampled(item, 1.5) for item in batch]
    still = changed(SETTINGS, learning_rate=0.0)
    free = policy.update(off_policy, still)
    weighted = policy.update(off_policy, changed(still, importance_cap=2.0))
    assert free.gradient_norm > 0
    assert weighted.gradient_norm == pytest.approx(free.gradient_norm, rel=1e-4)
    assert weighted.loss == pytest.approx(free.loss, rel=1e-4)


def test_a_kl_penalty_in_the_loss_pulls_towards_the_base_policy(
    policy: InProcessPolicy, play: Play
) -> None:
    batch = [trajectory(play(episode, 1), 0.0) for episode in range(1, 17)]
    settings = changed(SETTINGS, kl_penalty_coef=1.0, kl_in="loss", kl_estimator="k2")

    def distance() -> float:
        return policy.update(batch, changed(settings, learning_rate=0.0)).loss

    before = distance()
    for _ in range(5):
        policy.update(batch, settings)
    assert 0 < distance() < before


def test_kl_from_the_base_policy_is_reported_with_a_penalty_and_over_all_trajectories(
    policy: InProcessPolicy, batch: list[Trajectory]
) -> None:
    penalized = changed(SETTINGS, kl_penalty_coef=0.5, learning_rate=0.0)
    whole = policy.update(batch, penalized).kl_policy_base
    mixed = policy.update(
        [batch[0], *(replace(item, is_trained=False) for item in batch[1:])], penalized
    )
    assert whole is not None
    assert mixed.kl_policy_base == pytest.approx(whole, rel=1e-5)
    assert policy.update(batch, SETTINGS).kl_policy_base is None


def test_the_post_update_kl_is_what_the_next_update_would_measure(
    policy: InProcessPolicy, batch: list[Trajectory]
) -> None:
    result = policy.update(batch, changed(SETTINGS, compute_post_kl=True))
    after = policy.update(batch, changed(SETTINGS, learning_rate=0.0))
    assert result.kl_pre_post_v1 == pytest.approx(after.kl_sample_train_v1, rel=1e-4)
    assert result.kl_pre_post_v2 == pytest.approx(after.kl_sample_train_v2, rel=1e-4)
    assert result.kl_pre_post_v1 != pytest.approx(result.kl_sample_train_v1, rel=1e-2)
    assert after.kl_pre_post_v1 is None

"""An update changes the adapter alone, reports what it measured, and resumes bit for bit."""

import hashlib
import math
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import torch
from peft import PeftModel

from producer.algorithms.settings import UpdateSettings
from producer.errors import MismatchError, NotFoundError
from producer.policy.learner import Trajectory
from producer.policy.policy import Turn
from producer.policy.sequences import join_turns
from producer.policy.torch_policy import cpu_parallel, update_passes
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.loading import load_base, load_network
from producer.policy.torch_policy.logprobs import completion_logprobs
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.screen_encoder import ScreenEncoder
from tests.support.rounding import rounding_of_forward, rounding_of_sum
from tests.support.turns import past_turn
from tests.support.update_settings import changed

from .conftest import (
    SETTINGS,
    ClickOnly,
    Play,
    are_equal,
    make_request,
    make_screen,
    trajectory,
    weights,
)


def base_weights(network: Network) -> dict[str, torch.Tensor]:
    return {
        name: value.clone()
        for name, value in network.base.state_dict().items()
        if "lora_" not in name
    }


def drift(policy: InProcessPolicy, turns: list[Turn]) -> float:
    """Mean change of the log-prob of what was sampled.

    Without advantage and step the KL estimate is sampled minus trained log-prob.
    """
    result = policy.update([trajectory(turns, 0.0)], changed(SETTINGS, learning_rate=0.0))
    return -result.kl_sample_train_v1


@pytest.mark.parametrize("advantage", [1.0, -1.0])
def test_a_rollout_becomes_likelier_with_a_positive_advantage_and_less_likely_with_a_negative_one(
    policy: InProcessPolicy, play: Play, advantage: float
) -> None:
    turns = play(1, 2)
    for _ in range(3):
        policy.update([trajectory(turns, advantage)], SETTINGS)
    assert drift(policy, turns) * advantage > 0


def test_a_rollout_better_than_its_group_gains_on_a_worse_one(
    policy: InProcessPolicy, play: Play
) -> None:
    good, bad = play(1, 2), play(2, 2)
    for _ in range(3):
        policy.update([trajectory(good, 1.0), trajectory(bad, -1.0)], SETTINGS)
    assert drift(policy, good) > drift(policy, bad)


def test_an_update_changes_the_adapter_and_nothing_else(
    policy: InProcessPolicy, network: Network, batch: list[Trajectory]
) -> None:
    adapter, base = weights(network), base_weights(network)
    policy.update(batch, SETTINGS)
    assert not are_equal(weights(network), adapter)
    assert all(torch.equal(value, base[name]) for name, value in base_weights(network).items())


@pytest.mark.parametrize("settings", [changed(SETTINGS, learning_rate=0.0), SETTINGS])
def test_without_learning_rate_or_without_trajectories_no_weight_changes_and_the_version_rises(
    policy: InProcessPolicy, network: Network, batch: list[Trajectory], settings: UpdateSettings
) -> None:
    before = weights(network)
    result = policy.update(batch if settings.learning_rate == 0 else [], settings)
    assert are_equal(weights(network), before)
    assert policy.version == 1
    assert (result.num_tokens == 0) == (settings.learning_rate > 0)
    assert math.isnan(result.entropy) == (settings.learning_rate > 0)


def test_the_report_counts_tokens_and_measures_entropy_as_sampled(
    policy: InProcessPolicy, network: Network, batch: list[Trajectory]
) -> None:
    logprobs = [
        logprob
        for item in batch
        for turn in item.turns
        for logprob in turn.tokens.completion_logprobs
    ]
    result = policy.update(batch, SETTINGS)
    assert result.num_tokens == len(logprobs)
    assert result.entropy == pytest.approx(
        -sum(logprobs) / len(logprobs), rel=0, abs=rounding_of_sum(logprobs) / len(logprobs)
    )
    assert result.kl_sample_train_v1 == pytest.approx(
        0.0, abs=rounding_of_forward(network.base, max(map(abs, logprobs)))
    )
    assert result.gradient_norm > 0


def test_rollouts_without_a_loss_are_measured_and_have_no_backward_pass(
    policy: InProcessPolicy,
    play: Play,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As rejection sampling gives them: advantage 0 for what was not right."""
    plays = [play(1, 2), play(2, 3), play(3, 1)]
    batch = [trajectory(turns, float(at == 1)) for at, turns in enumerate(plays)]
    settings = changed(SETTINGS, loss_fn="reinforce", learning_rate=0.0)
    backward: list[int] = []
    original = update_passes.UpdatePasses._backward

    def counted(self: update_passes.UpdatePasses, *given: Any) -> update_passes.BackwardPass:
        backward.append(sum(len(row) for row in given[1]))
        return original(self, *given)

    monkeypatch.setattr(update_passes.UpdatePasses, "_backward", counted)
    found = policy.update(batch, settings)
    assert sum(backward) == 1
    everything = changed(settings, entropy_coef=1e-30)
    whole = policy.update(batch, everything)
    assert sum(backward) == 1 + 3
    assert (found.num_tokens, found.num_measured_tokens) == (
        whole.num_tokens,
        whole.num_measured_tokens,
    )
    for name in ("loss", "gradient_norm", "entropy", "kl_sample_train_v1", "largest_ratio"):
        assert getattr(found, name) == pytest.approx(getattr(whole, name), rel=1e-4, abs=1e-6), name


def test_the_gradient_is_reported_before_it_is_clipped(
    policy: InProcessPolicy, batch: list[Trajectory]
) -> None:
    free = policy.update(batch, changed(SETTINGS, learning_rate=0.0))
    bounded = policy.update(
        batch, changed(SETTINGS, learning_rate=0.0, max_gradient_norm=free.gradient_norm / 10)
    )
    # At learning rate 0 both updates compute the same gradient.
    assert bounded.gradient_norm == free.gradient_norm == free.clipped_gradient_norm
    assert bounded.clipped_gradient_norm == free.gradient_norm / 10


def test_ratios_are_measured_over_every_pass_and_1_as_long_as_no_weight_changed(
    policy: InProcessPolicy, batch: list[Trajectory]
) -> None:
    settings = changed(SETTINGS, loss_fn="ppo", clip_ratio_low=1e-3, clip_ratio_high=1e-3)
    still = policy.update(batch, changed(settings, learning_rate=0.0, ppo_epochs=2))
    assert still.clip_fraction == 0.0
    assert still.largest_ratio == pytest.approx(1.0, abs=1e-4)
    moved = policy.update(batch, changed(settings, learning_rate=0.1, ppo_epochs=2))
    # The first pass clips nothing, so at most the second's half of the tokens is.
    assert moved.clip_fraction is not None
    assert moved.largest_ratio is not None
    assert 0.0 < moved.clip_fraction <= 0.5
    assert moved.largest_ratio > 1.001
    unclipped = policy.update(batch, SETTINGS)
    assert unclipped.clip_fraction is None


def test_a_parameter_that_the_loss_does_not_depend_on_is_not_changed(
    network: Network, batch: list[Trajectory]
) -> None:
    """A loaded adapter may also adapt the frozen tower."""
    beside = torch.nn.Parameter(torch.ones(2))
    network.adapted.register_parameter("lora_beside", beside)
    assert any(parameter is beside for parameter in network.trainable())
    before = weights(network)
    InProcessPolicy(network, ClickOnly()).update(batch, SETTINGS)
    assert beside.tolist() == [1.0, 1.0]
    assert not are_equal(before, weights(network))


def test_an_update_has_the_same_bits_on_any_number_of_workers(
    base_folder: Path, batch: list[Trajectory], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        update_passes,
        "micro_batches",
        lambda _network, sequences: [[[index]] for index in range(len(sequences))],
    )
    after = []
    for count in (1, 2, 4):
        monkeypatch.setattr(cpu_parallel, "num_workers", lambda _device, count=count: count)
        network = load_network(str(base_folder), lora_rank=4, seed=1)
        InProcessPolicy(network, ClickOnly()).update(batch, changed(SETTINGS, kl_penalty_coef=0.5))
        after.append(weights(network))
    assert are_equal(after[0], after[1])
    assert are_equal(after[0], after[2])


def test_substeps_split_the_batch_and_each_takes_a_step(
    policy: InProcessPolicy, batch: list[Trajectory]
) -> None:
    result = policy.update(batch, changed(SETTINGS, num_substeps=2))
    steps = {int(state["step"]) for state in policy._optimizer.state.values()}
    assert steps == {2}
    # The second half is measured after the first half's step, so the policies differ.
    largest = max(
        abs(logprob)
        for item in batch
        for turn in item.turns
        for logprob in turn.tokens.completion_logprobs
    )
    assert result.kl_sample_train_v2 > rounding_of_forward(policy._network.base, largest) ** 2


def test_more_substeps_than_trajectories_are_as_many_as_trajectories(
    policy: InProcessPolicy, batch: list[Trajectory]
) -> None:
    policy.update(batch, changed(SETTINGS, num_substeps=100))
    assert {int(state["step"]) for state in policy._optimizer.state.values()} == {len(batch)}


def test_the_optimiser_takes_the_learning_rate_of_each_update(
    policy: InProcessPolicy, batch: list[Trajectory]
) -> None:
    for rate in (0.1, 0.3):
        policy.update(batch, changed(SETTINGS, learning_rate=rate))
        assert policy._optimizer.param_groups[0]["lr"] == rate


def test_the_kl_penalty_pulls_towards_the_base_policy(
    policy: InProcessPolicy, network: Network, play: Play
) -> None:
    batch = [trajectory(play(episode, 1), 0.0) for episode in range(1, 17)]
    sequences = [
        sequence
        for item in batch
        for sequence in join_turns((turn.screenshot, turn.tokens) for turn in item.turns)
    ]
    encoder = ScreenEncoder(network.base.model.visual, network.processor)

    def distance_from_base() -> float:
        with torch.no_grad():
            now = completion_logprobs(network, encoder, sequences, 1.0)
            with network.adapted.disable_adapter():
                base = completion_logprobs(network, encoder, sequences, 1.0)
        return float((now - base).square().mean())

    before = distance_from_base()
    assert policy.update(batch, changed(SETTINGS, learning_rate=0.0)).gradient_norm == 0.0
    for _ in range(5):
        policy.update(batch, changed(SETTINGS, kl_penalty_coef=1.0))
    assert distance_from_base() < before


def test_running_episodes_continue_under_the_new_weights(
    policy: InProcessPolicy, batch: list[Trajectory]
) -> None:
    first = policy.sample([make_request(1, make_screen(1))])[0]
    history = (past_turn(make_screen(1), first.text, first.tokens),)
    second = make_request(1, make_screen(2), history)
    policy.update(batch, SETTINGS)
    after_update = policy.sample([second])[0]
    policy.forget(UUID(int=1))
    from_records = policy.sample([second])[0]
    assert after_update.tokens == from_records.tokens


def test_a_restored_state_continues_bit_for_bit(
    policy: InProcessPolicy,
    network: Network,
    base_folder: Path,
    batch: list[Trajectory],
    tmp_path: Path,
) -> None:
    policy.update(batch, changed(SETTINGS, num_substeps=2))
    policy.save_state(tmp_path)
    continued = policy.update(batch, changed(SETTINGS, num_substeps=2, seed=3))

    other_network = load_network(str(base_folder), lora_rank=4, seed=99)
    other = InProcessPolicy(other_network, ClickOnly())
    other.load_state(tmp_path)
    assert other.version == 1
    resumed = other.update(batch, changed(SETTINGS, num_substeps=2, seed=3))
    assert are_equal(weights(other_network), weights(network))
    assert replace(resumed, seconds=0.0) == replace(continued, seconds=0.0)
    request = make_request(1, make_screen(1))
    assert other.sample([request]) == policy.sample([request])


def test_a_checkpoint_is_peft_s_and_named_by_the_hash_of_its_weights(
    policy: InProcessPolicy,
    network: Network,
    base_folder: Path,
    batch: list[Trajectory],
    tmp_path: Path,
) -> None:
    policy.update(batch, SETTINGS)
    digest = policy.save_checkpoint(tmp_path)
    assert (
        digest == hashlib.sha256((tmp_path / "adapter_model.safetensors").read_bytes()).hexdigest()
    )
    assert isinstance(
        PeftModel.from_pretrained(load_base(str(base_folder))[0], tmp_path), PeftModel
    )
    restored = load_network(str(base_folder), lora_rank=4, seed=0, adapter=tmp_path)
    assert are_equal(weights(restored), weights(network))


def test_a_fresh_adapter_changes_nothing_and_is_the_same_for_a_seed(base_folder: Path) -> None:
    some, same, other = (
        load_network(str(base_folder), lora_rank=4, seed=seed) for seed in (1, 1, 2)
    )
    assert are_equal(weights(some), weights(same))
    assert not are_equal(weights(some), weights(other))
    request = make_request(1, make_screen(1))
    assert InProcessPolicy(some, ClickOnly()).sample([request]) == InProcessPolicy(
        other, ClickOnly()
    ).sample([request])


def test_a_folder_without_a_saved_state_is_not_found(
    policy: InProcessPolicy, tmp_path: Path
) -> None:
    with pytest.raises(NotFoundError, match="is not a saved state"):
        policy.load_state(tmp_path)


def test_a_state_of_another_rank_is_a_mismatch(
    base_folder: Path, policy: InProcessPolicy, tmp_path: Path
) -> None:
    policy.save_state(tmp_path)
    other = InProcessPolicy(load_network(str(base_folder), lora_rank=8, seed=0), ClickOnly())
    with pytest.raises(MismatchError, match="lora_rank"):
        other.load_state(tmp_path)

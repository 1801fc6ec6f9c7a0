"""The value head in states and checkpoints."""

from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from producer.algorithms.settings import GaeSettings
from producer.errors import MismatchError, UsageError
from producer.policy.learner import Trajectory
from producer.policy.torch_policy.gae_advantage import GaeAdvantage

from .conftest import SETTINGS, are_equal, weights
from .test_value_head import GAE, head_weights, opened, rewarded


@pytest.fixture
def rewarded_batch(batch: list[Trajectory]) -> list[Trajectory]:
    return [rewarded(one, seed) for seed, one in enumerate(batch)]


def test_updates_after_a_restored_state_have_the_same_bits(
    base_folder: Path, rewarded_batch: list[Trajectory], tmp_path: Path
) -> None:
    network, policy = opened(base_folder)
    policy.update(rewarded_batch, GAE)
    policy.save_state(tmp_path)
    expected = policy.update(rewarded_batch, GAE)
    again_network, again = opened(base_folder)
    again.update(rewarded_batch, GAE)  # a head with another history
    again.update(rewarded_batch, GAE)
    again.load_state(tmp_path)
    result = again.update(rewarded_batch, GAE)
    assert replace(result, seconds=0.0) == replace(expected, seconds=0.0)
    assert are_equal(weights(network), weights(again_network))
    assert are_equal(head_weights(policy), head_weights(again))


def test_a_state_without_a_value_head_restores_none(
    base_folder: Path, rewarded_batch: list[Trajectory], batch: list[Trajectory], tmp_path: Path
) -> None:
    _, policy = opened(base_folder)
    policy.update(batch, SETTINGS)
    policy.save_state(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "adapter.safetensors",
        "optimizer.pt",
    ]
    _, again = opened(base_folder)
    again.update(rewarded_batch, GAE)
    again.load_state(tmp_path)
    policy.update(rewarded_batch, GAE)
    again.update(rewarded_batch, GAE)
    assert are_equal(head_weights(policy), head_weights(again))


def test_a_checkpoint_holds_the_head_beside_an_adapter_that_plain_peft_loads(
    base_folder: Path, rewarded_batch: list[Trajectory], tmp_path: Path
) -> None:
    from peft import PeftModel
    from transformers import AutoModelForImageTextToText

    network, policy = opened(base_folder)
    policy.update(rewarded_batch, GAE)
    policy.save_checkpoint(tmp_path / "checkpoint")
    stored = load_file(tmp_path / "checkpoint" / "value_head.safetensors")
    assert are_equal([stored["weight"], stored["bias"]], head_weights(policy))
    assert set(stored) == {"weight", "bias"}
    base = AutoModelForImageTextToText.from_pretrained(base_folder)
    plain = PeftModel.from_pretrained(base, tmp_path / "checkpoint", is_trainable=True)
    loaded = [parameter for parameter in plain.parameters() if parameter.requires_grad]
    assert are_equal([parameter.detach() for parameter in loaded], weights(network))

    _, fresh = opened(base_folder)
    fresh.load_learned(GaeSettings, tmp_path / "checkpoint")
    assert are_equal(head_weights(fresh), head_weights(policy))


def test_a_head_that_is_damaged_or_of_another_network_is_refused(
    base_folder: Path, tmp_path: Path
) -> None:
    network, _ = opened(base_folder)
    head = GaeAdvantage(network)
    head.save(tmp_path)
    path = tmp_path / "value_head.safetensors"
    weights = load_file(path)
    save_file({**weights, "weight": weights["weight"][:, 1:].contiguous()}, path)
    with pytest.raises(MismatchError, match=r"value_head\.safetensors does not fit"):
        head.load(tmp_path)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(UsageError, match="is damaged"):
        head.load(tmp_path)

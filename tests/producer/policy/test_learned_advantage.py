"""Weights of an advantage in states and checkpoints: what holds of GAE's and of PRIME's alike."""

from dataclasses import replace
from pathlib import Path

import pytest
from peft import PeftModel
from safetensors.torch import load_file, save_file

from producer.algorithms.settings import UpdateSettings
from producer.errors import MismatchError, UsageError
from producer.policy.learner import Trajectory
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.learned_advantage import LearnedAdvantage

from .conftest import SETTINGS, are_equal, weights
from .test_architectures import plain
from .test_reward_adapter import PRIME, folder, judged, opened
from .test_value_head import GAE, head_weights

__all__ = ["folder", "judged"]


@pytest.fixture(params=[GAE, PRIME], ids=["gae", "prime"])
def settings(request: pytest.FixtureRequest) -> UpdateSettings:
    given = request.param
    assert isinstance(given, UpdateSettings)
    return given


def learned_of(policy: InProcessPolicy, settings: UpdateSettings) -> LearnedAdvantage:
    assert settings.learned_advantage is not None
    return policy._learned[type(settings.learned_advantage)]


def assert_same_weights(
    one: InProcessPolicy, other: InProcessPolicy, settings: UpdateSettings
) -> None:
    ours, theirs = (learned_of(policy, settings).weights() for policy in (one, other))
    assert list(ours) == list(theirs)
    assert are_equal([*ours.values()], [*theirs.values()])


def test_updates_after_a_restored_state_have_the_same_bits(
    folder: Path, judged: list[Trajectory], settings: UpdateSettings, tmp_path: Path
) -> None:
    network, policy = opened(folder)
    policy.update(judged, settings)
    policy.save_state(tmp_path)
    expected = policy.update(judged, settings)
    again_network, again = opened(folder)
    for seed in (5, 6):  # weights with another history
        again.update(judged, settings.model_copy(update={"seed": seed}))
    again.load_state(tmp_path)
    result = again.update(judged, settings)
    assert replace(result, seconds=0.0) == replace(expected, seconds=0.0)
    assert are_equal(weights(network), weights(again_network))
    assert_same_weights(policy, again, settings)


def test_a_state_without_such_weights_restores_none(
    folder: Path, judged: list[Trajectory], settings: UpdateSettings, tmp_path: Path
) -> None:
    _, policy = opened(folder)
    plain_batch = [replace(item, advantage=1.0) for item in judged]
    assert policy.update(plain_batch, SETTINGS).learned is None
    policy.save_state(tmp_path)
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == ["adapter.safetensors", "optimizer.pt"]
    _, again = opened(folder)
    again.update(judged, settings)
    again.load_state(tmp_path)
    for each in (again, policy):
        each.update(judged, settings)
    assert_same_weights(policy, again, settings)


def test_a_new_training_takes_them_from_a_checkpoint_and_adam_begins_anew(
    folder: Path, judged: list[Trajectory], settings: UpdateSettings, tmp_path: Path
) -> None:
    _, policy = opened(folder)
    policy.update(judged, settings)
    policy.save_checkpoint(tmp_path)
    _, fresh = opened(folder)
    fresh.load_learned(type(settings.learned_advantage), tmp_path)  # type: ignore[arg-type]
    assert_same_weights(policy, fresh, settings)
    assert learned_of(fresh, settings)._optimizer.state_dict()["state"] == {}


def test_what_is_damaged_or_of_another_network_is_refused(
    folder: Path, judged: list[Trajectory], settings: UpdateSettings, tmp_path: Path
) -> None:
    _, policy = opened(folder)
    policy.update(judged, settings)
    policy.save_checkpoint(tmp_path)
    learned = learned_of(policy, settings)
    path = tmp_path / learned.saved_at
    kept = load_file(path)
    name = next(iter(kept))
    save_file({**kept, name: kept[name].flatten()[1:].contiguous()}, path)
    with pytest.raises(MismatchError, match=f"{learned.title} .* does not fit this policy"):
        learned.load(path)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(UsageError, match="is damaged"):
        learned.load(path)


def test_plain_peft_loads_the_adapter_beside_a_value_head(
    folder: Path, judged: list[Trajectory], tmp_path: Path
) -> None:
    network, policy = opened(folder)
    policy.update(judged, GAE)
    policy.save_checkpoint(tmp_path)
    stored = load_file(tmp_path / "value_head.safetensors")
    assert are_equal([stored["weight"], stored["bias"]], head_weights(policy))
    theirs = PeftModel.from_pretrained(plain(folder), tmp_path, is_trainable=True)
    loaded = [parameter.detach() for parameter in theirs.parameters() if parameter.requires_grad]
    assert are_equal(loaded, weights(network))

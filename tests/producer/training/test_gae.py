"""The advantage gae: a value head learns beside the adapter, from groups of any size."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from producer.algorithms.settings import GaeSettings
from producer.config import read_config
from producer.errors import UsageError
from producer.resume.resume_state import checkpoint_folder
from producer.training.redo import redo
from producer.training.run import run
from producer.training.updates import update_settings
from tests.producer.training.conftest import Trained
from tests.support.reading import ReadLog, of_type
from tests.support.same_run import bits_of, differences
from tests.support.small_run import TINY, small
from tests.support.update_settings import changed

torch = pytest.importorskip("torch")

SETTINGS: dict[str, Any] = {
    **TINY,
    "group_size": 1,
    "groups_per_batch": 6,
    "advantage": "gae",
    "loss_fn": "ppo",
    "gae_gamma": 0.99,
    "gae_lambda": 0.95,
    "value_learning_rate": 0.1,
    "value_coef": 0.1,
    "num_substeps": 2,
}


def test_groups_of_one_are_trained_on_and_every_fact_of_the_values_is_recorded(
    trained: Trained, read_log: ReadLog, policy: str
) -> None:
    installation = trained(**SETTINGS, model_name=policy, num_steps=2)
    events = read_log()
    samples = [
        item for event in of_type(events, "step.samples_chosen") for item in event["samples"]
    ]
    assert len(samples) == 12
    assert all(sample["used"] and sample["drop_reason"] is None for sample in samples)
    for step in (0, 1):
        own = samples[6 * step : 6 * step + 6]
        assert {item["policy_version"] for item in own} == {step}
        assert {item["staleness"] for item in own} == {0}
        # Whitened over tokens: their mean, weighted by tokens, is 0.
        assert sum(item["advantage"] * item["num_tokens"] for item in own) == pytest.approx(
            0, abs=1e-4
        )
        assert len({item["advantage"] for item in own}) > 1
    for finished in of_type(events, "step.finished"):
        metrics = finished["metrics"]
        assert metrics["optim/value_loss"] > 0
        assert metrics["optim/value_gradient_norm"] > 0
        assert 0 <= metrics["optim/value_clip_fraction"] <= 1
    first, second = (event["metrics"] for event in of_type(events, "step.finished"))
    assert (first["optim/value_mean"], second["optim/value_mean"] != 0) == (0.0, True)
    # Recorded after the update, which computes them; the transcript has them as well.
    types = [event["type"] for event in events]
    assert types.index("cua.step.training_started") < types.index("cua.step.samples_chosen")
    text = (installation.runs_dir / "small/groups/generation-0/step-000001.txt").read_text()
    assert f"advantage {samples[0]['advantage']:+.3f}" in text


def test_a_resumed_training_has_the_bits_of_an_undisturbed_one(
    trained: Trained, policy: str, tmp_path: Path
) -> None:
    trained(**SETTINGS, model_name=policy, num_steps=3).home.rename(tmp_path / "whole")
    installation = trained(**SETTINGS, model_name=policy, num_steps=2)
    run(small(**SETTINGS, model_name=policy, num_steps=3), installation=installation)
    ours, theirs = bits_of(installation.home, "small"), bits_of(tmp_path / "whole", "small")
    # The first process evaluated when it had finished, which the undisturbed one did not.
    assert [place for place in differences(ours, theirs) if "eval-2" not in place] == []
    both = ["/".join(place) for place in ours.keys() & theirs.keys()]
    assert any("step-000003/value_head.safetensors" in place for place in both)
    assert any("step-000003/value_optimizer.pt" in place for place in both)


def test_every_step_is_trained_again_with_the_same_bits(trained: Trained, policy: str) -> None:
    installation = trained(**SETTINGS, model_name=policy, num_steps=3)
    for step, from_step in ((1, 0), (3, 2)):
        result = redo(installation, "small", step, None, threading.Event())
        assert (result.from_step, result.is_equal) == (from_step, True), step


def test_a_changed_value_setting_is_found_by_redo(
    trained: Trained, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    installation = trained(**SETTINGS, model_name=policy, num_steps=2)
    monkeypatch.setattr(
        "producer.training.recorded_updates.update_settings",
        lambda config, **at: changed(update_settings(config, **at), value_learning_rate=0.2),
    )
    assert not redo(installation, "small", 2, None, threading.Event()).is_equal


def test_a_training_from_a_checkpoint_begins_with_its_value_head(
    trained: Trained, read_log: ReadLog, policy: str
) -> None:
    installation = trained(**SETTINGS, model_name=policy, num_steps=2)
    folder = checkpoint_folder(installation.runs_dir / "small", 0, 2)
    given = {**SETTINGS, "model_name": policy, "num_steps": 1, "load_checkpoint_path": folder}
    assert (folder / "value_head.safetensors").is_file()
    run(small(**given, training_name="after"), installation=installation)
    metrics = of_type(read_log(), "step.finished")[-1]["metrics"]
    assert metrics["optim/value_mean"] != 0
    (folder / "value_head.safetensors").write_bytes(b"no")
    before = read_log()
    with pytest.raises(UsageError, match=r"value_head\.safetensors is damaged"):
        run(small(**given, training_name="damaged"), installation=installation)
    assert read_log() == before


def test_every_setting_of_the_values_reaches_the_update_and_is_refused_without_gae() -> None:
    given = {
        "gae_gamma": 0.9,
        "gae_lambda": 0.8,
        "value_learning_rate": 0.7,
        "value_clip": 0.6,
        "value_coef": 0.5,
    }
    settings = update_settings(read_config({"advantage": "gae", **given}), generation=0, step=1)
    assert settings.learned_advantage == GaeSettings(**given)
    for name, value in given.items():
        with pytest.raises(
            UsageError, match=f"{name}: has no effect on the advantage mean_centered"
        ):
            read_config({name: value})


def test_groups_of_one_rollout_or_one_reward_are_kept_unless_asked_otherwise() -> None:
    assert not read_config({"advantage": "gae"}).remove_constant_reward_groups
    assert read_config({"advantage": "rloo"}).remove_constant_reward_groups
    given = {"advantage": "gae", "remove_constant_reward_groups": True}
    assert read_config(given).remove_constant_reward_groups
    config = read_config({"advantage": "gae", "group_size": 1})
    assert config.min_group_size == 1
    assert "remove_constant_reward_groups" not in config.explicit
    assert json.loads(json.dumps(config.recorded()))["remove_constant_reward_groups"] is False


def test_the_scripted_policy_has_no_value_head() -> None:
    with pytest.raises(UsageError, match="`oracle` has no value head"):
        read_config({"advantage": "gae", "model_name": "oracle"})

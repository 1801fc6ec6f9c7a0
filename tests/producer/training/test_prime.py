"""The advantage prime: a training whose reward model learns the outcomes beside the policy."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from producer.algorithms.settings import PrimeSettings
from producer.config import read_config
from producer.errors import UsageError
from producer.policy.learner import RolloutOutcome
from producer.resume.resume_state import checkpoint_folder
from producer.training import recorded_updates
from producer.training.redo import redo
from producer.training.run import run
from producer.training.updates import trajectory, update_settings
from tests.producer.training.conftest import Trained
from tests.support.forked_process import forked_training
from tests.support.reading import ReadLog, of_type
from tests.support.same_run import bits_of, differences
from tests.support.small_run import small
from tests.support.update_settings import changed

from .test_killed_in_rollouts import TIMEOUT_S, read, train
from .test_token_credit import result

torch = pytest.importorskip("torch")

SETTINGS: dict[str, Any] = {
    "environment": "text_to_sql",
    "advantage": "prime",
    "loss_fn": "ppo",
    "max_tokens": 60,
    "skip_baseline": True,
    "eval_every": 0,
    "eval_episodes": 1,
    "save_every": 2,
    "group_size": 8,
    "groups_per_batch": 2,
    "remove_constant_reward_groups": False,
    "learning_rate": 1e-3,
    "prime_learning_rate": 1e-2,
    "lora_rank": 4,
    "num_substeps": 2,
}
GIVEN = {
    "prime_learning_rate": 0.7,
    "prime_beta": 0.6,
    "prime_process_coef": 0.5,
    "prime_outcome_coef": 0.4,
}


@pytest.fixture
def settings(answering: dict[str, Any], one_thread: None) -> dict[str, Any]:  # noqa: ARG001
    return {**SETTINGS, **answering}


def test_every_fact_of_the_reward_model_is_recorded_and_its_cross_entropy_falls(
    trained: Trained, read_log: ReadLog, settings: dict[str, Any]
) -> None:
    trained(**settings, num_steps=3)
    events = read_log()
    samples = [
        item for event in of_type(events, "step.samples_chosen") for item in event["samples"]
    ]
    assert len(samples) == 48
    assert all(sample["used"] for sample in samples)
    assert len({sample["reward"] for sample in samples}) == 2
    for step in range(3):
        own = samples[16 * step : 16 * step + 16]
        assert {item["policy_version"] for item in own} == {step}
        # Whitened over tokens: their mean, weighted by tokens, is 0.
        assert sum(item["advantage"] * item["num_tokens"] for item in own) == pytest.approx(
            0, abs=1e-4
        )
    metrics = [event["metrics"] for event in of_type(events, "step.finished")]
    losses = [metric["prime/loss"] for metric in metrics]
    # The reward model begins at the reference, where every sum of log-ratios is 0.
    assert losses[0] == pytest.approx(0.6931472)
    assert losses[2] < losses[0] - 0.005
    assert all(0 <= metric["prime/accuracy"] <= 1 for metric in metrics)
    assert all(
        metric["prime/gradient_norm"] > 0 != metric["prime/reward_mean"] for metric in metrics
    )
    types = [event["type"] for event in events]
    assert types.index("cua.step.training_started") < types.index("cua.step.samples_chosen")


def test_a_training_that_was_killed_has_the_bits_of_an_undisturbed_one(
    trained: Trained, settings: dict[str, Any], tmp_path: Path
) -> None:
    whole = trained(**settings, num_steps=3).home
    given = {**settings, "training_name": "small", "num_steps": 3}
    killed = tmp_path / "killed"
    deadline_s = time.monotonic() + TIMEOUT_S
    with forked_training(killed, given, {"update_s": 0.5}) as process:
        while time.monotonic() < deadline_s and process.is_running():
            process.halt()
            try:
                steps = len(of_type(read(killed), "step.created"))
            except (OSError, ValueError):
                steps = 0  # the log is being made
            if steps >= 2:
                break
            process.go_on()
            time.sleep(0.05)
    # What was being synced is not visible before the kill, and recovered afterwards.
    assert 1 <= len(of_type(read(killed), "step.finished")) < 3
    train(killed, given)
    ours, theirs = bits_of(killed, "small"), bits_of(whole, "small")
    assert differences(ours, theirs) == []
    names = {"/".join(place) for place in theirs}
    for expected in ("prime_adapter.safetensors", "prime_optimizer.pt"):
        assert any(f"step-000003/{expected}" in name for name in names), expected
    assert any("prime/adapter_model.safetensors" in name for name in names)


def test_every_step_is_trained_again_with_the_same_bits_and_another_setting_is_found(
    trained: Trained,
    settings: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installation = trained(**settings, num_steps=3)
    for step, from_step in ((1, 0), (3, 2)):
        again = redo(installation, "small", step, None, threading.Event())
        assert (again.from_step, again.is_equal) == (from_step, True), step
    for name, value in GIVEN.items():
        with monkeypatch.context() as patch:
            patch.setattr(
                recorded_updates,
                "update_settings",
                lambda config, name=name, value=value, **at: changed(
                    update_settings(config, **at), **{name: value}
                ),
            )
            assert not redo(installation, "small", 2, None, threading.Event()).is_equal, name


def test_a_training_from_a_checkpoint_begins_with_its_reward_model(
    trained: Trained, read_log: ReadLog, settings: dict[str, Any]
) -> None:
    installation = trained(**settings, num_steps=3)
    folder = checkpoint_folder(installation.runs_dir / "small", 0, 3)
    after = small(
        **{**settings, "training_name": "after"}, num_steps=1, load_checkpoint_path=folder
    )
    run(after, installation=installation)
    metrics = of_type(read_log(), "step.finished")[-1]["metrics"]
    assert metrics["prime/loss"] != pytest.approx(0.6931472, abs=1e-6)


def test_a_trajectory_says_how_its_rollout_ended() -> None:
    config = read_config(
        {
            "advantage": "prime",
            "environment": "text_to_sql",
            "model_name": "a/policy",
            "tasks": {"source_type": "demo_all"},
        }
    )
    right = result(1, 3, 0.25).with_verdict(0.25, success=True)
    given = trajectory(config, right, advantage=None, is_trained=True)
    tokens = ((0.0, 0.0, 0.25),)
    assert given.outcome == RolloutOutcome(
        right.plan.group_num, 0.25, is_right=True, token_rewards=tokens
    )


def test_every_setting_reaches_the_update_and_is_refused_without_prime() -> None:
    base = {
        "environment": "text_to_sql",
        "model_name": "a/policy",
        "tasks": {"source_type": "demo_all"},
    }
    settings = update_settings(
        read_config({**base, "advantage": "prime", **GIVEN}), generation=0, step=1
    )
    assert settings.learned_advantage == PrimeSettings(**GIVEN)
    for name, value in GIVEN.items():
        with pytest.raises(UsageError, match=f"{name}: has no effect on the advantage rloo"):
            read_config({**base, "advantage": "rloo", name: value})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"environment": "android"}, "advantage: prime is only for environment text_to_sql"),
        ({"model_name": "oracle"}, "the policy `oracle` has no reward model"),
        ({"group_size": 1}, "group_size: 1 is fewer than the 2 rollouts that a group needs"),
        ({"group_size": 1, "min_group_size": 1}, "min_group_size: prime compares the rollouts"),
        ({"gae_gamma": 0.9}, "gae_gamma: has no effect on the advantage prime"),
        ({"prime_process_coef": 0}, "prime_process_coef"),
        ({"core_function": "compute_token_wise_advantage"}, "advantage: prime has no effect"),
        ({"verifier_coef": 2.0}, "verifier_coef: only with a core_function"),
    ],
)
def test_what_goes_with_prime_in_no_case_is_refused_by_name(
    changes: dict[str, Any], message: str
) -> None:
    given = {
        "advantage": "prime",
        "environment": "text_to_sql",
        "model_name": "a/policy",
        "tasks": {"source_type": "demo_all"},
        **changes,
    }
    with pytest.raises(UsageError, match=message):
        read_config(given)

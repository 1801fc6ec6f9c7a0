"""A training of all weights: kept, continued, done again and evaluated as one of an adapter is."""

import threading
from pathlib import Path
from typing import Any

import pytest

from producer.config import read_config
from producer.errors import UsageError
from producer.resume.resume_state import checkpoint_folder
from producer.training.manual_evaluation import evaluate
from producer.training.redo import redo
from producer.training.run import run
from schemas.installation import Installation
from tests.producer.training.conftest import Trained
from tests.support.reading import ReadLog, installation_at, of_type
from tests.support.same_run import bits_of, differences
from tests.support.small_run import small

torch = pytest.importorskip("torch")

SETTINGS: dict[str, Any] = {
    "environment": "text_to_sql",
    "train_type": "full",
    "loss_fn": "ppo",
    "kl_penalty_coef": 0.1,
    "kl_in": "loss",
    "kl_estimator": "k3",
    "max_tokens": 60,
    "skip_baseline": True,
    "eval_every": 0,
    "eval_episodes": 1,
    "save_every": 2,
    "group_size": 4,
    "groups_per_batch": 2,
    "remove_constant_reward_groups": False,
    "learning_rate": 1e-3,
    "seed": 2,  # its groups have different rewards, so that there is something to learn
}
ELSEWHERE = {"model_name": "a/policy", "tasks": {"source_type": "demo_all"}}


@pytest.fixture
def settings(answering: dict[str, Any], one_thread: None) -> dict[str, Any]:  # noqa: ARG001
    return {**SETTINGS, **answering}


def test_its_checkpoint_is_a_whole_policy_that_transformers_loads_and_a_run_begins_from(
    trained: Trained, read_log: ReadLog, settings: dict[str, Any]
) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    installation = trained(**settings, num_steps=2)
    folder = checkpoint_folder(installation.runs_dir / "small", 0, 2)
    assert of_type(read_log(), "training.created")[0]["recipe"]["lora_rank"] is None
    assert not (folder / "adapter_config.json").exists()
    assert not (folder / "training.json").exists()
    begun = AutoModelForCausalLM.from_pretrained(settings["model_name"]).state_dict()
    after_it = AutoModelForCausalLM.from_pretrained(folder).state_dict()
    assert begun.keys() == after_it.keys()
    assert [name for name in begun if torch.equal(begun[name], after_it[name])] == []
    assert AutoTokenizer.from_pretrained(folder).decode([1])
    after = {**settings, "training_name": "after", "model_name": str(folder)}
    assert run(small(**after, num_steps=1), installation=installation).status == "completed"


def test_one_that_goes_on_has_the_bits_of_one_that_never_stopped(
    trained: Trained, settings: dict[str, Any], tmp_path: Path
) -> None:
    run(small(**settings, num_steps=3), installation=installation_at(tmp_path / "whole"))
    parts = trained(**settings, num_steps=2)
    run(small(**settings, num_steps=3), installation=parts)
    ours, theirs = bits_of(parts.home, "small"), bits_of(tmp_path / "whole", "small")
    assert any("step-000003/optimizer.pt" in "/".join(place) for place in ours)
    assert [
        difference for difference in differences(ours, theirs) if "step-000003" in difference
    ] == []


def test_its_steps_are_trained_again_with_the_same_bits(
    trained: Trained, settings: dict[str, Any]
) -> None:
    installation = trained(**settings, num_steps=2)
    assert redo(installation, "small", 2, None, threading.Event()).is_equal


def test_prime_trains_a_reward_model_of_all_weights_beside_it(
    installation: Installation, read_log: ReadLog, settings: dict[str, Any]
) -> None:
    prime = {**settings, "advantage": "prime", "prime_learning_rate": 1e-2, "kl_penalty_coef": 0.0}
    given = {name: one for name, one in prime.items() if name not in {"kl_in", "kl_estimator"}}
    run(small(**given, num_steps=2), installation=installation)
    losses = [event["metrics"]["prime/loss"] for event in of_type(read_log(), "step.finished")]
    assert losses[0] == pytest.approx(0.6931472)
    assert losses[1] != losses[0]
    run(small(**given, num_steps=3), installation=installation)


def test_it_is_evaluated_by_its_name(trained: Trained, settings: dict[str, Any]) -> None:
    installation = trained(**settings, num_steps=2)
    summary = evaluate({"eval_episodes": 2}, training_name="small", installation=installation)
    assert summary.episodes == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dtype": "bfloat16"}, "dtype: train_type full computes in float32"),
        ({"load_checkpoint_path": "."}, "load_checkpoint_path: train_type full begins from a"),
    ],
)
def test_what_it_cannot_have_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_config({**ELSEWHERE, "train_type": "full", **given})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lora_rank", 8),
        ("lora_alpha", 8.0),
        ("target_modules", ["attention"]),
        ("lora_dropout", 0.1),
    ],
)
def test_settings_of_an_adapter_are_refused_beside_it(
    installation: Installation, settings: dict[str, Any], name: str, value: object
) -> None:
    with pytest.raises(UsageError, match=f"{name}: has no effect with train_type full"):
        run(small(**settings, **{name: value}), installation=installation)
    assert not installation.runs_dir.exists()

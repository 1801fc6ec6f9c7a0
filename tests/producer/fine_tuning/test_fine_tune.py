"""A supervised training is a training like the others: its events, its result, its continuation."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)

from producer.agents.text_to_sql.codec import TextToSqlCodec
from producer.agents.text_to_sql.data.generate import SyntheticSize, write_synthetic
from producer.agents.text_to_sql.data.sound_questions import load_text_to_sql
from producer.errors import CuaTrainError, StopRequestedError, UsageError
from producer.fine_tuning.questions import read_answered
from producer.fine_tuning.run import FineTuningSummary, fine_tune
from producer.fine_tuning.settings import Objective
from producer.process_rewards.cocte import read_cocte
from producer.supervised.step_scorer import StepScorer
from schemas.actions import Answer, Terminate
from schemas.installation import Installation
from tests.support.reading import installation_at, read_all
from tests.support.small_run import watching


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return installation_at(tmp_path / "home")


def train(
    installation: Installation, given: dict[str, Any], objective: Objective = "sft", **more: Any
) -> FineTuningSummary:
    return fine_tune(objective, given, installation=installation, **more)


def events(installation: Installation, kind: str) -> list[dict[str, Any]]:
    found = [json.loads(record.value) for record in read_all(installation)]
    return [item["data"] for item in found if item["type"] == kind]


def test_it_learns_and_records_every_step(whole: tuple[Installation, FineTuningSummary]) -> None:
    installation, summary = whole
    assert (summary.status, summary.steps, summary.examples, summary.held_out) == (
        *("completed", 9, 21, 3),
    )
    assert summary.train_loss_first is not None
    assert summary.train_loss_last is not None
    assert summary.train_loss_last < summary.train_loss_first / 1.5
    assert summary.loss_before is not None
    assert summary.loss_after is not None
    assert summary.loss_after < summary.loss_before / 1.5
    created = events(installation, "cua.training.created")[0]
    assert (created["kind"], created["total_steps"]) == ("sft", 9)
    assert created["config"]["objective"] == "sft"
    assert created["recipe"]["lora_rank"] is None
    finished = events(installation, "cua.step.finished")
    assert [item["policy_version"] for item in finished] == list(range(1, 10))
    assert all(item["reward_mean"] is None for item in finished)
    assert all(item["kl_divergence"] is None for item in finished)
    assert all(item["policy_gradient_norm"] > 0 for item in finished)
    assert [("test/loss" in item["metrics"]) for item in finished] == [False, False, True] * 3
    assert [event["step"] for event in events(installation, "cua.checkpoint.saved")] == [3, 6, 9]
    assert events(installation, "cua.training.heartbeat_sent")
    assert len(events(installation, "cua.training.completed")) == 1


def test_a_completed_training_prints_its_result_again(
    whole: tuple[Installation, FineTuningSummary], complete: Installation
) -> None:
    first = whole[1]
    num_records = len(read_all(complete))
    output = complete.runs_dir / "small" / "model"
    weights = load_file(output / "model.safetensors")
    again = train(complete, {"training_name": "small"})
    assert len(read_all(complete)) == num_records
    figures = ("steps", "loss_before", "loss_after", "accuracy_after", "train_loss_last", "status")
    assert [getattr(again, figure) for figure in figures] == [
        getattr(first, figure) for figure in figures
    ]
    # The result is written again where it is missing.
    for path in output.iterdir():
        path.unlink()
    train(complete, {"training_name": "small"})
    restored = load_file(output / "model.safetensors")
    assert all(torch.equal(restored[name], one) for name, one in weights.items())


def test_an_adapter_is_loaded_by_peft_alone(
    installation: Installation, given: dict[str, Any], policy: Path, tmp_path: Path
) -> None:
    out = str(tmp_path / "out")
    train(installation, {**given, "train_type": "lora", "epochs": 30, "output_dir": out})
    assert events(installation, "cua.training.created")[0]["recipe"]["lora_rank"] == 8
    plain = AutoModelForCausalLM.from_pretrained(policy)
    adapted = PeftModel.from_pretrained(plain, tmp_path / "out").eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert answer(adapted, tokenizer, "Show users number 4") == "SELECT name FROM users"


def test_all_weights_are_loaded_by_transformers_alone(
    installation: Installation, given: dict[str, Any], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    train(installation, {**given, "epochs": 15, "output_dir": str(out)})
    network = AutoModelForCausalLM.from_pretrained(out, dtype="auto")
    assert network.dtype == torch.float32
    tokenizer = AutoTokenizer.from_pretrained(out)
    assert answer(network, tokenizer, "Show users number 4") == "SELECT name FROM users"


def answer(network: Any, tokenizer: Any, prompt: str) -> str:
    asked = tokenizer.apply_chat_template(
        [{"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True
    )
    tokens = torch.tensor([tokenizer.encode(asked, add_special_tokens=False)])
    with torch.no_grad():
        found = network.generate(input_ids=tokens, max_new_tokens=12, do_sample=False)
    text: str = tokenizer.decode(found[0, tokens.shape[1] :], skip_special_tokens=True)
    return text


def test_a_process_reward_model_scores_as_it_was_trained(
    installation: Installation, given: dict[str, Any], data: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "prm"
    settings = {**given, "data_path": [str(data["process_reward"])], "output_dir": str(out)}
    summary = train(installation, {**settings, "epochs": 20}, "process_reward")
    assert summary.accuracy_after is not None
    assert summary.train_loss_last is not None
    # Soft labels of 0.75 leave an entropy of 0.562 at every other step.
    assert summary.train_loss_last == pytest.approx(0.562 / 2, abs=0.03)
    scorer = StepScorer.load(out, device="cpu")
    right, wrong = (
        scorer.score_steps("Show users number 4", ["WITH a AS", f"SELECT name FROM {table}"])
        for table in ("users", "items")
    )
    assert right[0] == pytest.approx(0.75, abs=0.1)
    assert right[1] > 0.8
    assert wrong[1] < 0.2


def test_a_process_reward_adapter_scores_over_its_base(
    installation: Installation, given: dict[str, Any], data: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "prm"
    settings = {**given, "data_path": [str(data["process_reward"])], "output_dir": str(out)}
    train(installation, {**settings, "epochs": 20, "train_type": "lora"}, "process_reward")
    scores = StepScorer.load(out, device="cpu").score_steps("Show users number 4", ["WITH a AS"])
    assert scores[0] == pytest.approx(0.75, abs=0.15)


def test_a_pairwise_reward_model_prefers_the_better_answer(
    installation: Installation, given: dict[str, Any], data: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "rm"
    settings = {**given, "data_path": [str(data["pairwise_reward"])], "output_dir": str(out)}
    summary = train(installation, {**settings, "epochs": 12}, "pairwise_reward")
    assert summary.train_loss_last is not None
    assert summary.train_loss_last < 0.1
    network = AutoModelForSequenceClassification.from_pretrained(out)
    tokenizer = AutoTokenizer.from_pretrained(out)
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Show users number 4"}],
        add_generation_prompt=True,
        tokenize=False,
    )
    better, worse = (
        network(**tokenizer(f"{prompt}{answer}{tokenizer.eos_token}", return_tensors="pt")).logits
        for answer in ("SELECT name FROM users", "SELECT name FROM items")
    )
    assert better > worse
    assert network.config.num_labels == 1


def test_a_stopped_training_continues_by_its_name_alone_with_the_same_bits(
    installation: Installation,
    given: dict[str, Any],
    whole: tuple[Installation, FineTuningSummary],
) -> None:
    stop = threading.Event()

    def stop_at(line: str) -> None:
        if line.startswith("step 4/9: loss"):
            stop.set()

    with watching(stop_at), pytest.raises(StopRequestedError):
        train(installation, given, stop=stop)
    assert len(events(installation, "cua.step.finished")) == 4
    assert len(events(installation, "cua.training.cancelled")) == 1
    summary = train(installation, {"training_name": "small"})
    assert (summary.steps, summary.generation) == (9, 0)
    assert bits(installation, summary) == bits(*whole)


def bits(installation: Installation, summary: FineTuningSummary) -> dict[str, Any]:
    """Figures of every step, and the trained weights."""
    output = installation.runs_dir / summary.training_name / "model"
    weights = load_file(next(output.glob("*.safetensors")))
    finished = events(installation, "cua.step.finished")
    return {
        "losses": [item["loss"] for item in finished],
        "norms": [item["policy_gradient_norm"] for item in finished],
        "weights": {name: one.numpy().tobytes() for name, one in weights.items()},
    }


def test_a_loss_that_is_no_number_ends_the_training_with_what_to_do(
    installation: Installation, given: dict[str, Any]
) -> None:
    changes = {"learning_rate": 1e30, "lr_scheduler": "constant", "weight_decay": 0.0}
    with pytest.raises(CuaTrainError, match="the loss is nan, not a number; lower learning_rate"):
        train(installation, {**given, **changes})
    assert len(events(installation, "cua.training.failed")) == 1


def test_a_data_sets_folder_is_learned_as_its_environment_asks(
    installation: Installation, given: dict[str, Any], tmp_path: Path
) -> None:
    data = tmp_path / "data"
    write_synthetic(data, 0, SyntheticSize(1, 1, 2, templates=("count", "filter")))
    summary = train(installation, {**given, "data_path": [str(data)], "epochs": 1})
    assert (summary.examples, summary.held_out) == (3, 1)
    asked = read_answered(data, None)[0].messages
    task = load_text_to_sql(data, "train", "tasks")[0]
    assert [item.role for item in asked] == ["system", "user", "assistant"]
    assert asked[1].content == task.description
    (query, end) = TextToSqlCodec().parse(asked[2].content, 0, 0)
    assert isinstance(query.action, Answer)
    assert read_cocte(query.action.text).names
    assert isinstance(end.action, Terminate)
    database = next(data.rglob("*.sqlite"))
    database.write_bytes(b"no database")
    with pytest.raises(UsageError, match=f"data_path: {database}: is no SQLite database"):
        train(installation, {**given, "training_name": "other", "data_path": [str(data)]})


def test_long_examples_are_left_out_and_counted(
    installation: Installation, given: dict[str, Any], tmp_path: Path
) -> None:
    rows = json.loads(Path(given["data_path"][0]).read_text(encoding="utf-8"))
    rows[5]["completion"] = "SELECT name FROM users " * 30
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(rows))
    summary = train(
        installation,
        {**given, "data_path": [str(path)], "max_length": 60, "epochs": 1, "held_out_ratio": 0},
    )
    assert (summary.examples, summary.held_out, summary.left_out) == (23, 0, 1)
    assert summary.loss_after is None


def test_only_the_newest_checkpoints_are_kept(
    installation: Installation, given: dict[str, Any]
) -> None:
    summary = train(installation, {**given, "save_total_limit": 2})
    kept = Path(summary.log_path) / "checkpoints" / "generation-0"
    assert sorted(path.name for path in kept.iterdir()) == ["step-000006", "step-000009"]
    states = Path(summary.log_path) / "state" / "generation-0"
    assert sorted(path.name for path in states.iterdir()) == ["step-000006", "step-000009"]


@pytest.mark.parametrize("changes", [{"dtype": "bfloat16"}, {"gradient_checkpointing": True}])
def test_precision_changes_the_bits_and_checkpointing_does_not(
    installation: Installation, given: dict[str, Any], tmp_path: Path, changes: dict[str, Any]
) -> None:
    settings = {**given, "epochs": 1}
    plain = train(installation_at(tmp_path / "plain"), settings)
    changed = train(installation, {**settings, **changes})
    first, second = bits(installation_at(tmp_path / "plain"), plain), bits(installation, changed)
    assert (first == second) == ("gradient_checkpointing" in changes)
    assert second["losses"] == pytest.approx(first["losses"], rel=0.05)

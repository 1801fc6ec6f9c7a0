"""Supervised trainings refuse what they cannot do, and say what to do instead."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from producer.commands.checkpoints import command as checkpoints
from producer.errors import CuaTrainError, NotFoundError, UsageError
from producer.fine_tuning.run import fine_tune
from producer.training.manual_evaluation import evaluate
from producer.training.run import run
from schemas.installation import Installation
from tests.support.reading import installation_at, read_all
from tests.support.small_run import small


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return installation_at(tmp_path / "home")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": 0.5}, "learning_rate: 0.01 -> 0.5"),
        ({"epochs": 4}, "epochs: 3 -> 4"),
        ({"train_type": "lora"}, "train_type: 'full' -> 'lora'"),
    ],
)
def test_other_settings_are_refused(
    complete: Installation, changes: dict[str, Any], message: str
) -> None:
    num_records = len(read_all(complete))
    with pytest.raises(UsageError, match=message):
        fine_tune("sft", {"training_name": "small", **changes}, installation=complete)
    assert len(read_all(complete)) == num_records


def test_other_examples_under_the_same_name_are_refused(
    installation: Installation, given: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "rows.json"
    path.write_text(Path(given["data_path"][0]).read_text(encoding="utf-8"))
    fine_tune("sft", {**given, "data_path": [str(path)], "epochs": 1}, installation=installation)
    rows = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(rows[:-1]))
    with pytest.raises(UsageError, match="are not those that the training began with"):
        fine_tune("sft", {"training_name": "small"}, installation=installation)


def test_a_name_of_another_kind_of_training_is_refused(
    complete: Installation, given: dict[str, Any], data: dict[str, Path]
) -> None:
    run(small(training_name="rl", num_steps=1), installation=complete)
    with pytest.raises(UsageError, match="training 'rl' is of `cua-train run`"):
        fine_tune("sft", {**given, "training_name": "rl"}, installation=complete)
    with pytest.raises(UsageError, match="training 'small' is of `cua-train sql sft`"):
        fine_tune(
            "process_reward",
            {**given, "data_path": [str(data["process_reward"])]},
            installation=complete,
        )
    with pytest.raises(UsageError, match="training 'small' was begun by `cua-train sql`"):
        run(small(training_name="small", num_steps=1), installation=complete)


def test_an_unknown_name_without_a_policy_is_not_found(complete: Installation) -> None:
    with pytest.raises(NotFoundError, match=r"no training 'smal' here\. Did you mean 'small'\?"):
        fine_tune("sft", {"training_name": "smal"}, installation=complete)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_name": None}, "model_name: "),
        ({"data_path": ["absent.json"]}, "absent.json cannot be read"),
        (
            {"max_length": 3},
            r"max_length: all 21 examples are longer than 3 tokens; the shortest has \d+; raise it",
        ),
        ({"device": "cuda:9"}, "device: cuda:9 is not on this machine"),
        ({"device": "gpu"}, "device: unsupported device 'gpu'; use auto"),
        (
            {"group_by_prefix": True, "attention": "flash_attention_2"},
            "group_by_prefix: packed rows need a mask that flash_attention_2 does not take",
        ),
        ({"attention": "flash_attention_2"}, "attention: flash_attention_2 needs the package"),
        ({"objective": "pairwise_reward"}, "objective: this command trains sft, not pairwise"),
        ({"data_sha256": "ab"}, "data_sha256: is computed; omit it"),
        ({"labels": "hard"}, "labels: only with process_reward; omit it"),
        (
            {"chosen_key": "a", "input_key": "b"},
            "(?s)chosen_key: only with pairwise_reward.*input_key: only with process_reward",
        ),
        ({"output_dir": "FULL"}, "output_dir: .* is not empty"),
        ({"output_dir": "/dev/null/x"}, "output_dir: /dev/null/x cannot be used"),
        ({"model_name": "/absent"}, "/absent does not exist"),
    ],
)
def test_what_is_refused_leaves_nothing(
    installation: Installation,
    given: dict[str, Any],
    tmp_path: Path,
    changes: dict[str, Any],
    message: str,
) -> None:
    if changes.get("output_dir") == "FULL":
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "precious.txt").write_text("mine")
        changes = {"output_dir": str(tmp_path / "full")}
    with pytest.raises(CuaTrainError, match=message):
        fine_tune("sft", {**given, **changes}, installation=installation)
    assert not installation.home.exists()


def test_examples_longer_than_the_policys_context_are_not_a_matter_of_max_length(
    installation: Installation, given: dict[str, Any], policy: Path, tmp_path: Path
) -> None:
    short = shutil.copytree(policy, tmp_path / "short")
    config = json.loads((short / "config.json").read_text())
    (short / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 5}))
    with pytest.raises(UsageError) as refused:
        fine_tune("sft", {**given, "model_name": str(short)}, installation=installation)
    assert "all 21 examples are longer than 5 tokens" in refused.value.message
    assert "context has no more; use shorter examples or another policy" in refused.value.message
    assert "raise" not in refused.value.message


def test_what_needs_episodes_or_an_adapter_names_the_result_instead(
    complete: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = complete.runs_dir / "small" / "model"
    with pytest.raises(
        UsageError, match=f"is supervised .*`cua-train sql eval --model-name {output} --data"
    ):
        evaluate({}, training_name="small", installation=complete)
    monkeypatch.setenv("CUA_HOME", str(complete.home))
    asked = ["export", "small", "--output", str(complete.home / "copy")]
    refused = CliRunner().invoke(checkpoints, asked)
    assert isinstance(refused.exception, UsageError)
    assert "trains all weights and has no adapter" in str(refused.exception)


def test_the_result_of_another_training_is_not_replaced(
    installation: Installation, given: dict[str, Any], tmp_path: Path
) -> None:
    out = str(tmp_path / "out")
    fine_tune("sft", {**given, "output_dir": out, "epochs": 1}, installation=installation)
    with pytest.raises(UsageError, match="holds the result of training 'small'"):
        fine_tune(
            "sft", {**given, "training_name": "other", "output_dir": out}, installation=installation
        )

"""RewardSQL's published sft_config.json and rm_config.json run as they are, on one device."""

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from producer.commands.sql import command
from producer.errors import UsageError
from tests.producer.fine_tuning.conftest import rows_of

RECIPES = Path(__file__).parents[2] / "data/recipes/rewardsql"
PUBLISHED = {
    "sft": ("sft", RECIPES / "sft_config.json"),
    "process_reward": ("reward-model", RECIPES / "rm_config.json"),
}


@pytest.fixture(autouse=True)
def _working_folder(policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder that the files' paths are relative to, with a small policy in Qwen's place."""
    shutil.copytree(policy, tmp_path / "Qwen/Qwen2.5-Coder-7B-Instruct")
    (tmp_path / "processed_results").mkdir()
    for objective, name in (
        ("sft", "rs_18k_for_sft.json"),
        ("process_reward", "SQL_prm_data.json"),
    ):
        rows = json.dumps(rows_of(objective), ensure_ascii=False)
        (tmp_path / "processed_results" / name).write_text(rows, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("WANDB_MODE", "disabled")


@pytest.mark.parametrize(
    ("objective", "steps", "speed", "output"),
    [
        (
            *("sft", 1, "deepspeed_config, use_liger, attn_impl"),
            "saves/Qwen2.5-Coder-7B-Instruct/mschema_reject_sampling",
        ),
        (
            *("process_reward", 11, "micro_train_batch_size, zero_stage, packing_samples, "),
            "saves/Qwen2.5-Coder-7B-Instruct/prm",
        ),
    ],
)
def test_a_published_file_trains_all_weights_and_names_what_is_for_a_cluster_once(
    objective: str, steps: int, speed: str, output: str, caplog: pytest.LogCaptureFixture
) -> None:
    """24 questions; the reward model's 48 rows less a tenth held out are 11 batches of 4."""
    name, path = PUBLISHED[objective]
    caplog.set_level(logging.WARNING)
    done = CliRunner().invoke(command, [name, "--config", str(path), "--json"])
    assert done.exception is None, done.output
    summary = json.loads(done.stdout.splitlines()[-1])
    assert (summary["status"], summary["steps"]) == ("completed", steps)
    lines = [record.getMessage() for record in caplog.records]
    assert [speed in line for line in lines].count(True) == 1
    assert any(
        line.endswith("(reason: not used on one device; the result is the same)") for line in lines
    )
    written = Path(output)
    assert summary["output_dir"] == str(written.absolute())
    assert (written / "model.safetensors").is_file()
    assert not (written / "adapter_model.safetensors").exists()


def test_a_flag_that_is_0_or_false_wins_over_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def capture(_objective: str, given: dict[str, Any], **_named: object) -> None:
        seen.update(given)
        message = "enough"
        raise UsageError(message)

    monkeypatch.setattr("producer.fine_tuning.run.fine_tune", capture)
    path = PUBLISHED["sft"][1]
    assert json.loads(path.read_text(encoding="utf-8"))["gradient_checkpointing"] is True
    words = ["sft", "--config", str(path), "--seed", "0", "--gradient-checkpointing", "false"]
    assert str(CliRunner().invoke(command, words).exception) == "enough"
    assert (seen["seed"], seen["data_seed"], seen["gradient_checkpointing"]) == (0, 0, False)
    assert "skip_invalid" not in seen


def test_a_field_for_speed_changes_no_number(tmp_path: Path) -> None:
    published: dict[str, Any] = json.loads(PUBLISHED["sft"][1].read_text(encoding="utf-8"))
    plain = {
        name: value
        for name, value in published.items()
        if name not in {"deepspeed_config", "use_liger", "attn_impl"}
    }
    losses = []
    for number, fields in enumerate((published, plain)):
        path = tmp_path / f"sft-{number}.json"
        path.write_text(json.dumps(fields | {"output_dir": f"out-{number}"}), encoding="utf-8")
        done = CliRunner().invoke(command, ["sft", "--config", str(path), "--json"])
        summary = json.loads(done.stdout.splitlines()[-1])
        losses.append((summary["train_loss_first"], summary["loss_after"]))
    assert losses[0] == losses[1]

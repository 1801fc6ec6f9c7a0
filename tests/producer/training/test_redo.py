"""A step is trained again from the log with the same bits."""

import json
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from producer.errors import NotFoundError, UsageError
from producer.training.redo import redo
from producer.training.run import run
from schemas.installation import Installation
from tests.producer.training.conftest import Trained
from tests.support.reading import ReadLog, installation_at, of_type
from tests.support.slow_run import Slow
from tests.support.small_run import TINY, small

torch = pytest.importorskip("torch")

SETTINGS: dict[str, Any] = {**TINY, "group_size": 3, "groups_per_batch": 2}


def test_every_step_is_trained_again_with_the_same_bits(
    trained: Trained, read_log: ReadLog, policy: str, tmp_path: Path
) -> None:
    installation = trained(**SETTINGS, model_name=policy, num_steps=3)
    before = read_log()
    finished = of_type(before, "step.finished")
    assert any(item["policy_gradient_norm"] > 0 for item in finished), "nothing was trained"
    # States after steps 2 and 3 are kept; the checkpoint is that of step 2.
    for step, from_step, has_checkpoint in ((1, 0, None), (2, 0, True), (3, 2, True)):
        result = redo(installation, "small", step, None, threading.Event())
        assert (result.from_step, result.is_equal) == (from_step, True), step
        assert result.is_checkpoint_equal is has_checkpoint, step
        assert result.steps[-1].update.loss == finished[step - 1]["loss"]
        assert result.steps[-1].update.gradient_norm == finished[step - 1]["policy_gradient_norm"]
    output = tmp_path / "adapter"
    assert redo(installation, "small", 2, output, threading.Event()).is_equal
    saved = of_type(before, "checkpoint.saved")
    recorded = next(Path(item["path"]) for item in saved if item["step"] == 2)
    name = "adapter_model.safetensors"
    assert (output / name).read_bytes() == (recorded / name).read_bytes()
    assert read_log() == before


def test_a_step_trained_again_as_a_control_has_the_bits_of_a_training_with_that_control(
    trained: Trained, read_log: ReadLog, policy: str, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {**SETTINGS, "model_name": policy, "num_steps": 1, "save_every": 1}
    settings |= {"advantage": "rejection"}
    installation = trained(**settings)
    before = read_log()
    output = tmp_path / "control"
    result = redo(installation, "small", 1, output, threading.Event(), "ignored_rewards")
    assert (result.is_equal, result.as_json()["differences"]) == (None, [])
    assert result.steps[-1].differences, "nothing was trained in place of nothing"
    assert read_log() == before
    other = installation_at(tmp_path / "other")
    run(small(**settings, control="ignored_rewards"), installation=other)
    files = [
        next((home.runs_dir / "small").glob("checkpoints/**/adapter_model.safetensors"))
        for home in (installation, other)
    ]
    ours, same = (path.read_bytes() for path in files)
    assert (output / files[0].name).read_bytes() == same != ours
    with pytest.raises(
        UsageError, match="training 'small' uses the control ignored_rewards already"
    ):
        redo(other, "small", 1, None, threading.Event(), "wrong_sign")


def test_steps_that_were_collected_ahead_are_trained_again_with_the_same_bits(
    installation: Installation, read_log: ReadLog, policy: str
) -> None:
    settings = {**SETTINGS, "model_name": policy, "num_steps": 3, "max_steps_off_policy": 2}

    def are_all_collected() -> bool:
        return len(of_type(read_log(), "rollout.finished")) == 3 * 2 * 3

    with Slow(update_s=0.1, until=are_all_collected):
        run(small(**settings), installation=installation)
    samples = [
        one for item in of_type(read_log(), "step.samples_chosen") for one in item["samples"]
    ]
    assert {sample["staleness"] for sample in samples} == {0, 1, 2}
    for step in (1, 2, 3):
        result = redo(installation, "small", step, None, threading.Event())
        assert result.is_equal, (step, result.as_json()["differences"])


def test_a_screenshot_that_is_gone_is_named(trained: Trained, policy: str) -> None:
    installation = trained(**SETTINGS, model_name=policy, num_steps=2)
    shutil.rmtree(installation.home / "blobs")
    with pytest.raises(NotFoundError, match="step 1 cannot be trained again"):
        redo(installation, "small", 1, None, threading.Event())


def test_a_step_that_was_not_finished_is_not_found(installation: Installation) -> None:
    run(small(num_steps=1), installation=installation)
    with pytest.raises(NotFoundError, match="no finished step 2; it has finished steps 1 to 1"):
        redo(installation, "small", 2, None, threading.Event())
    with pytest.raises(NotFoundError, match="'smal'"):
        redo(installation, "smal", 1, None, threading.Event())
    assert json.loads(json.dumps(redo(installation, "small", 1, None, threading.Event()).as_json()))

"""Trainings at a stand-in for Tinker, by the command line: to their end, killed, and bereft."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.cua_train import CuaTrain, cua_train
from tests.support.killed_run import run_until_killed
from tests.support.reading import installation_at, read_all
from tests.support.same_run import bits_of, differences
from tests.support.tinker_key import KEY

__all__ = ["cua_train"]  # the fixture

pytestmark = [
    pytest.mark.usefixtures("sdk_connections"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]

TASKS = {"source_type": "ids", "task_ids": ["train_01_open_settings", "train_02_enable_wifi"]}
COMPARED = {"turn", "reward", "sample", "cua.step.finished"}
"""Of a run's bits; the paths of states differ, for each process has a run of its own there."""


@pytest.fixture
def words(small_policy: Path, at_tinker: str) -> list[str]:  # noqa: ARG001  # sets the environment
    """Three steps of eight turns."""
    given: dict[str, Any] = {
        "provider": "tinker",
        "model_name": small_policy,
        "training_name": "first",
        "tasks": json.dumps(TASKS),
        "num_steps": 3,
        "group_size": 2,
        "groups_per_batch": 2,
        "max_turns": 2,
        "max_tokens": 5,
        "lora_rank": 2,
        "learning_rate": 1e-3,
        "turn_cost": 0.1,
        # Every rollout is trained on: an untrained policy's groups have one reward.
        "advantage": "reinforce",
        "eval_every": 0,
        "eval_episodes": 1,
        "save_every": 2,
        "seed": 5,
    }
    flags = [(f"--{name.replace('_', '-')}", str(value)) for name, value in given.items()]
    switches = ["--skip-baseline", "--no-remove-constant-reward-groups", "--no-monitor"]
    return ["run", *(word for flag in flags for word in flag), *switches]


Train = Callable[..., None]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CUA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return tmp_path / "home"


def events(home: Path, type_: str) -> list[dict[str, Any]]:
    found = [json.loads(record.value) for record in read_all(installation_at(home))]
    return [event["data"] for event in found if event["type"] == type_]


def verify(home: Path) -> None:
    """The tables of the log are those of a replay."""
    for words in (["run", "--once"], ["verify"]):
        command = [str(Path(sys.executable).parent / "cua-project"), *words]
        environment = {**os.environ, "CUA_HOME": str(home)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert "equal after" in done.stdout + done.stderr


def without(words: list[str], flag: str) -> list[str]:
    """The words without this flag and its value."""
    at = words.index(flag)
    return [*words[:at], *words[at + 2 :]]


def holds_key(folder: Path) -> list[Path]:
    return [
        path for path in folder.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()
    ]


def test_a_training_through_the_sdk_keeps_its_checkpoints_at_tinker_and_no_key_anywhere(
    home: Path, words: list[str], cua_train: CuaTrain, tmp_path: Path, other_policy: Path
) -> None:
    cua_train(*words)
    steps = events(home, "cua.step.finished")
    assert [step["policy_version"] for step in steps] == [1, 2, 3]
    assert all(step["loss"] != 0 and step["policy_gradient_norm"] > 0 for step in steps)
    assert all(abs(step["kl_divergence"]) < 1e-5 for step in steps)
    saved = events(home, "cua.checkpoint.saved")
    assert [one["path"].rpartition("/")[2] for one in saved] == [
        "step-000000",
        "step-000002",
        "step-000003",
    ]
    assert all(one["path"].startswith("tinker://") for one in saved)
    listed = json.loads(cua_train("checkpoints", "list", "first", "--json").stdout)
    assert [row["verified"] for row in listed] == ["ok"] * 3
    verify(home)
    assert holds_key(home) == []
    # Another training begins from a checkpoint, with its rank.
    again = (*without(words, "--lora-rank"), "--training-name", "second", "--num-steps", "1")
    begins = ("--load-checkpoint-path", saved[-1]["path"])
    cua_train(*again, *begins)
    begun = events(home, "cua.training.created")[-1]
    assert begun["config"]["load_checkpoint_path"] == saved[-1]["path"]
    assert (begun["config"]["lora_rank"], begun["config"]["lora_alpha"]) == (2, None)
    refused = cua_train(*again, *begins, "--model-name", str(other_policy), expected=4)
    assert f"{saved[-1]['path']} is of " in refused.stderr
    refused = cua_train(*words, "--training-name", "third", "--lora-rank", "3", *begins, expected=2)
    assert "has 2, not 3; leave lora_rank out" in refused.stderr
    refused = cua_train("checkpoints", "export", "first", "--output", str(tmp_path), expected=2)
    assert f"is kept by Tinker: {saved[-1]['path']}" in refused.stderr
    refused = cua_train("redo", "--training-name", "first", "--step", "1", expected=2)
    assert "is trained by Tinker, whose bits do not repeat" in refused.stderr
    shown = cua_train("evaluate", "--training-name", "first", "--episodes", "1", "--json")
    assert json.loads(shown.stdout)["episodes"] == 1


def test_a_killed_training_continues_from_what_its_state_names_with_the_same_bits(
    home: Path, words: list[str], cua_train: CuaTrain, tmp_path: Path, monkeypatch: Any
) -> None:
    for place in (("flushed", "cua.step.training_started", "2"), ("rename", "manifest.json", "3")):
        run_until_killed(place, words)
    cua_train(*words)
    assert len(events(home, "cua.training.resumed")) == 2
    verify(home)
    monkeypatch.setenv("CUA_HOME", str(tmp_path / "whole"))
    cua_train(*words)
    found, expected = (
        {place: bits for place, bits in bits_of(folder, "first").items() if place[0] in COMPARED}
        for folder in (home, tmp_path / "whole")
    )
    assert {place[0] for place in expected} == COMPARED
    assert differences(expected, found) == []


def test_a_training_whose_folder_is_lost_goes_on_from_the_checkpoint_in_the_log(
    home: Path, words: list[str], cua_train: CuaTrain
) -> None:
    cua_train(*words)
    shutil.rmtree(home / "runs")
    said = cua_train(*words, "--num-steps", "4")
    assert "the state after step 3 is lost here; tinker://" in said.stderr
    assert [step["policy_version"] for step in events(home, "cua.step.finished")] == [1, 2, 3, 4]
    (resumed,) = events(home, "cua.training.resumed")
    assert (resumed["generation"], resumed["current_step"]) == (0, 3)
    verify(home)

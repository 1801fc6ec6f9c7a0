"""A training that a real vLLM samples for: log-probs, kills on either side, tables, evaluation."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from schemas.installation import Installation, read_installation
from tests.servers.vllm import VllmServer, vllm_server
from tests.support.forked_command import run_command
from tests.support.killed_run import run_until_killed
from tests.support.reading import read_all
from tests.support.replayed import assert_sampled_as_here, replay_first_step

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
logger = logging.getLogger(__name__)
EXACT = 1e-4
"""Largest difference of a log-prob, nats."""
TASKS = ("train_01_open_settings", "train_02_enable_wifi")


@pytest.fixture(scope="module")
def server(
    vllm_python: Path, policy_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[VllmServer]:
    log = tmp_path_factory.mktemp("vllm") / "log"
    with vllm_server(vllm_python, policy_folder, log) as started:
        yield started


@pytest.fixture
def installation() -> Installation:
    return read_installation(os.environ)


def events(installation: Installation, kind: str) -> list[dict[str, Any]]:
    found = [json.loads(record.value) for record in read_all(installation)]
    return [event["data"] for event in found if event["type"] == f"cua.{kind}"]


def words(folder: Path, url: str, name: str, steps: int) -> list[str]:
    settings = {
        "--training-name": name,
        "--model-name": str(folder),
        "--base-url": url,
        "--num-steps": str(steps),
        "--group-size": "4",
        "--groups-per-batch": "2",
        "--max-turns": "4",
        # Rewards differ, although so small a policy solves nothing.
        "--reward": "tests.support.token_reward:by_tokens",
        "--lora-rank": "8",
        "--learning-rate": "1e-3",
        "--eval-every": "0",
        "--max-turn-time-seconds": "600",  # longer than a start of vLLM
        "--eval-episodes": "4",
        "--tasks": json.dumps({"source_type": "ids", "task_ids": TASKS}),
    }
    return [
        *("run", "--no-monitor", "--skip-baseline"),
        *(word for pair in settings.items() for word in pair),
    ]


def check_gaps(installation: Installation, steps: int) -> None:
    """Every step's log-probs of the server are the learner's; logs the differences."""
    finished = events(installation, "step.finished")
    assert len(finished) == steps
    for step in finished:
        gaps = {name: step["metrics"][f"sampling/logprob_gap_{name}"] for name in ("mean", "max")}
        logger.warning("gradient %s, differences %s", step["policy_gradient_norm"], gaps)
        assert step["policy_gradient_norm"] > 0
        assert step["metrics"]["sampling/logprob_gap_max"] <= EXACT
        assert step["metrics"]["sampling/effective_sample_share"] == pytest.approx(1, abs=1e-3)


@pytest.mark.services
def test_killed_on_either_side_a_training_goes_on_and_its_tables_are_equal(
    policy_folder: Path,
    server: VllmServer,
    installation: Installation,
    migrated_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = words(policy_folder, server.url, "killed", 3)
    run_until_killed(("emit", "cua.step.training_started", "2"), given)

    stderr = ""
    with subprocess.Popen(
        [sys.executable, "-m", "producer", "run", "--training-name", "killed", "--no-monitor"],
        stderr=subprocess.PIPE,
        text=True,
    ) as again:
        assert again.stderr is not None
        for line in again.stderr:
            stderr += line
            if line.startswith("step 2/3"):
                server.kill()
                server.start()
    assert again.returncode == 0, stderr
    assert stderr.count("\nstep 2/3") == 1, "vLLM was killed"
    check_gaps(installation, 3)
    replay = replay_first_step(installation, "killed", policy_folder)
    logger.warning(
        "step 1, loss per token: %.9g with vLLM's log-probs, %.9g with those of this process",
        *(replay.recorded.loss_per_token, replay.own.loss_per_token),
    )
    assert_sampled_as_here(replay)
    assert len({*replay.advantages}) > 1
    (loss, *_) = [step["loss"] for step in events(installation, "step.finished")]
    assert replay.recorded.loss == pytest.approx(loss, rel=1e-5, abs=1e-4)
    redone = run_command("producer", "redo", "--training-name", "killed", "--step", "3")
    assert redone.returncode == 0, redone.stdout + redone.stderr
    turns = events(installation, "rollout.turn_taken")
    assert {turn["policy_version"] for turn in turns} >= {0, 1, 2}
    assert all(turn["tokens"]["completion_logprobs"] for turn in turns)
    names = [row["id"] for row in httpx.get(f"{server.url}/models").json()["data"]]
    assert len(names) == 2, "the policy and its newest adapter"
    monkeypatch.setenv("DATABASE_URL", migrated_url)
    assert run_command("consumers", "run", "--once").returncode == 0
    verified = run_command("consumers", "verify")
    assert verified.returncode == 0, verified.stdout


def test_an_evaluation_asks_it_for_every_turn(
    policy_folder: Path, server: VllmServer, installation: Installation
) -> None:
    done = run_command(
        *("producer", "evaluate", "--base-url", server.url, "--model-name", str(policy_folder)),
        *("--episodes", "4", "--eval-tasks", json.dumps({"source_type": "ids", "task_ids": TASKS})),
        *("--renderer-name", "compact", "--json"),
    )
    assert done.returncode == 0, done.stderr
    assert len(events(installation, "rollout.turn_taken")) >= 4


def test_an_adapter_of_a_rank_above_the_servers_is_refused_before_the_first_event(
    policy_folder: Path, server: VllmServer, installation: Installation
) -> None:
    given = words(policy_folder, server.url, "first", 1)
    given += ["--lora-rank", "32", "--max-turn-time-seconds", "5"]
    done = run_command("producer", *given)
    assert done.returncode == 5, done.stderr
    error = done.stderr.splitlines()[-1]
    assert error.startswith(f"error: base_url: {server.url} cannot load the adapter")
    assert "vLLM needs --enable-lora, a --max-lora-rank of at least lora_rank" in error
    assert not installation.local_log_path.exists()

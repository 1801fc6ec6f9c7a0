"""A training killed while episodes are under way has the bits of an undisturbed one."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from producer.demo_policy.build import build_policy
from tests.producer.policy.conftest import SIZE, TEXTS
from tests.support.reading import installation_at, read_all
from tests.support.same_run import bits_of, differences
from tests.support.small_run import SMALL

pytest.importorskip("torch")

TIMEOUT_S = 300.0
PROCESS = """
import json, sys, torch
torch.set_num_threads(1)
from producer.config import read_config
from producer.training.run import run
run(read_config(json.loads(sys.argv[1])))
"""


def command(settings: dict[str, Any]) -> list[str]:
    return [sys.executable, "-c", PROCESS, json.dumps(settings)]


def turns_recorded(home: Path) -> list[dict[str, Any]]:
    records = read_all(installation_at(home))
    return [json.loads(one.value) for one in records if b'"cua.rollout.turn_taken"' in one.value]


def kill_after(home: Path, settings: dict[str, Any], num_turns: int) -> None:
    """SIGKILL once so many turns are in the log."""
    environ = {**os.environ, "CUA_HOME": str(home)}
    with subprocess.Popen(command(settings), env=environ, stderr=subprocess.DEVNULL) as process:
        deadline_s = time.monotonic() + TIMEOUT_S
        try:
            while time.monotonic() < deadline_s and process.poll() is None:
                try:
                    if len(turns_recorded(home)) >= num_turns:
                        return
                except (OSError, ValueError):
                    pass  # the log is being made
                time.sleep(0.02)
        finally:
            process.kill()
    pytest.fail(f"the process ended by itself, or had no {num_turns} turns in time")


@pytest.mark.parametrize("policy", ["oracle", "torch"])
def test_kills_among_the_turns_of_a_step_change_no_bit(tmp_path: Path, policy: str) -> None:
    settings = {
        **SMALL,
        "num_steps": 1,
        "max_turns": 5,
        "max_tokens": 8,
        # Fewer than there are episodes: finished ones make room for others.
        "max_concurrent_rollouts": 4,
    }
    if policy == "torch":
        build_policy(tmp_path / "policy", TEXTS, seed=0, size=SIZE)
        settings["model_name"] = str(tmp_path / "policy")
        settings["renderer_name"] = "compact"
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    environ = {**os.environ, "CUA_HOME": str(whole)}
    subprocess.run(command(settings), env=environ, check=True, timeout=TIMEOUT_S)
    all_turns = len(turns_recorded(whole))
    for part in (0.2, 0.5):
        kill_after(killed, settings, int(part * all_turns))
    environ = {**os.environ, "CUA_HOME": str(killed)}
    subprocess.run(command(settings), env=environ, check=True, timeout=TIMEOUT_S)
    assert any(one["data"]["metrics"].get("replayed") for one in turns_recorded(killed))
    undisturbed = bits_of(whole, "small")
    assert {place[0] for place in undisturbed} >= {"turn", "reward", "sample", "cua.step.finished"}
    assert differences(undisturbed, bits_of(killed, "small")) == []

"""A supervised training that is killed among its steps has the bits of an undisturbed one."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.producer.fine_tuning.test_fine_tune import bits, events, train
from tests.support.reading import installation_at, read_all

TIMEOUT_S = 120.0
PROCESS = """
import json, os, sys
from producer.fine_tuning.run import fine_tune
from producer.fine_tuning import loop
from schemas.installation import read_installation
loop.STATE_EVERY_S = 0.0
fine_tune("sft", json.loads(sys.argv[1]), installation=read_installation(os.environ))
"""


def kill_after(home: Path, given: dict[str, Any], num_steps: int) -> None:
    """SIGKILL once so many steps are in the log."""
    command = [sys.executable, "-c", PROCESS, json.dumps(given)]
    environ = {**os.environ, "CUA_HOME": str(home)}
    with subprocess.Popen(command, env=environ, stderr=subprocess.DEVNULL) as process:
        deadline_s = time.monotonic() + TIMEOUT_S
        try:
            while time.monotonic() < deadline_s and process.poll() is None:
                try:
                    records = read_all(installation_at(home))
                    finished = sum(b'"cua.step.finished"' in one.value for one in records)
                    if finished >= num_steps:
                        return
                except (OSError, ValueError):
                    pass  # the log is being made
                time.sleep(0.01)
        finally:
            process.kill()
    pytest.fail(f"the process ended by itself, or had no {num_steps} steps in time")


@pytest.mark.parametrize("train_type", ["full", "lora"])
def test_kills_among_the_steps_change_no_bit(
    tmp_path: Path, given: dict[str, Any], train_type: str
) -> None:
    torch.set_num_threads(1)
    settings = {**given, "train_type": train_type, "epochs": 20}
    whole, killed = installation_at(tmp_path / "whole"), installation_at(tmp_path / "killed")
    for num_steps in (7, 31):
        kill_after(killed.home, settings, num_steps)
    resumed = train(killed, {"training_name": "small"})
    train(whole, settings)
    assert (resumed.steps, resumed.generation) == (60, 0)
    assert bits(killed, resumed) == bits(whole, resumed)
    assert len(events(killed, "cua.step.created")) == 60
    assert len(events(killed, "cua.training.resumed")) == 2

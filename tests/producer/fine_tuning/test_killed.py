"""A supervised training that is killed among its steps has the bits of an undisturbed one."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from producer.fine_tuning.settings import Objective
from tests.producer.fine_tuning.test_fine_tune import bits, events, train
from tests.support.reading import installation_at
from tests.support.same_run import bits_of, differences

TIMEOUT_S = 600.0
PROCESS = """
import json, os, sys
import torch
from producer.fine_tuning import loop
from producer.fine_tuning.run import fine_tune
from schemas.installation import read_installation
from tests.support.killed_run import kill_at
torch.set_num_threads(1)
loop.FineTuningLoop._is_state_due = lambda *_: True
kill_at(*sys.argv[3:])
fine_tune(sys.argv[1], json.loads(sys.argv[2]), installation=read_installation(os.environ))
"""
PLACES = (("optimizer", "5"), ("rename", "manifest.json", "4"))
"""In step 5; then, after four steps more, between a state's weights and its manifest."""


def kill_at(
    home: Path, objective: Objective, given: dict[str, Any], place: tuple[str, ...]
) -> None:
    """Train until SIGKILL there."""
    done = subprocess.run(
        [sys.executable, "-c", PROCESS, objective, json.dumps(given), *place],
        env={**os.environ, "CUA_HOME": str(home), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]


@pytest.mark.parametrize(
    ("objective", "train_type"),
    [
        ("sft", "full"),
        ("sft", "lora"),
        ("process_reward", "full"),
        ("pairwise_reward", "full"),
    ],
)
def test_kills_among_the_steps_change_no_bit(
    tmp_path: Path,
    given: dict[str, Any],
    data: dict[str, Path],
    objective: Objective,
    train_type: str,
) -> None:
    torch.set_num_threads(1)
    settings = {
        **given,
        "data_path": [str(data[objective])],
        "train_type": train_type,
        "epochs": 4,
        "eval_strategy": "no",
        "save_strategy": "no",
    }
    whole, killed = installation_at(tmp_path / "whole"), installation_at(tmp_path / "killed")
    for place in PLACES:
        kill_at(killed.home, objective, settings, place)
    resumed = train(killed, {"training_name": "small"}, objective)
    undisturbed = train(whole, settings, objective)
    assert resumed.steps == undisturbed.steps > 9
    assert resumed.generation == 0
    assert bits(killed, resumed) == bits(whole, resumed)
    ours, theirs = bits_of(killed.home, "small"), bits_of(whole.home, "small")
    # How often a state is saved depends on the clock; the last one is always there.
    both = {place for place in ours.keys() & theirs.keys() if place[0] == "file"}
    assert any(place[-1] == "optimizers.pt" for place in both)
    assert differences({at: ours[at] for at in both}, {at: theirs[at] for at in both}) == []
    assert len(events(killed, "cua.step.created")) == resumed.steps
    assert len(events(killed, "cua.training.resumed")) == 2
    states = {path.name for path in killed.runs_dir.glob("small/state/generation-0/*")}
    assert len(states) <= 2

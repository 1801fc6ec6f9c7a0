"""A supervised training that is killed among its steps has the bits of an undisturbed one."""

import multiprocessing
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from producer.fine_tuning.loop import FineTuningLoop
from producer.fine_tuning.run import fine_tune
from producer.fine_tuning.settings import Objective
from schemas.installation import Installation
from tests.producer.fine_tuning.test_fine_tune import bits, events, train
from tests.support import killed_run
from tests.support.reading import installation_at
from tests.support.same_run import bits_of, differences

TIMEOUT_S = 600.0
FORKS = multiprocessing.get_context("forkserver")
"""Of a process that has imported everything once."""
FORKS.set_forkserver_preload([__name__, "producer.fine_tuning.trainee"])
PLACES = (("optimizer", "5"), ("rename", "manifest.json", "4"))
"""In step 5; then, after four steps more, between a state's weights and its manifest."""


def train_until_killed(
    installation: Installation, objective: Objective, given: dict[str, Any], place: tuple[str, ...]
) -> None:
    torch.set_num_threads(1)
    FineTuningLoop._is_state_due = lambda *_: True  # type: ignore[method-assign]
    killed_run.kill_at(*place)
    fine_tune(objective, given, installation=installation)


def kill_at(
    installation: Installation, objective: Objective, given: dict[str, Any], place: tuple[str, ...]
) -> None:
    """Train until SIGKILL there."""
    arguments = installation, objective, given, place
    process = FORKS.Process(target=train_until_killed, args=arguments)
    process.start()
    process.join(TIMEOUT_S)
    assert process.exitcode == -signal.SIGKILL


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
        kill_at(killed, objective, settings, place)
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

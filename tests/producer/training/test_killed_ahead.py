"""A training killed while it collects ahead of the step that it trains."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from producer.agents.android.policy.build import build_policy
from producer.config import read_config
from producer.training.run import run
from tests.producer.policy.conftest import TEXTS
from tests.producer.training.test_off_policy import (
    check_progress,
    check_staleness,
    of_type,
    samples,
)
from tests.support.forked_process import forked_training
from tests.support.invariants import violations
from tests.support.reading import installation_at, read_all
from tests.support.small_run import SMALL
from tests.support.small_size import SIZE

pytest.importorskip("torch")

TIMEOUT_S = 240.0
NUM_STEPS = 3
AT_MOST = 2


def read(home: Path) -> list[dict[str, Any]]:
    return [
        {
            **json.loads(record.value),
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
        }
        for record in read_all(installation_at(home))
    ]


def trains_while_it_collects(events: list[dict[str, Any]], step: int) -> bool:
    """Whether this step is being trained while rollouts of a later one are under way."""
    steps = {
        event["data"]["step_id"]: event["data"]["step"] for event in of_type(events, "step.created")
    }
    training = {
        steps[event["data"]["step_id"]] for event in of_type(events, "step.training_started")
    }
    finished = {steps[event["data"]["step_id"]] for event in of_type(events, "step.finished")}
    turned = {event["subject"] for event in of_type(events, "rollout.turn_taken")}
    ended = {event["subject"] for event in of_type(events, "rollout.finished")}
    is_ahead = any(
        steps[event["data"]["source_id"]] > step and event["subject"] in turned - ended
        for event in of_type(events, "rollout.created")
    )
    return step in training - finished and is_ahead


def kill_in_overlap(
    home: Path, settings: dict[str, Any], slow: dict[str, float], step: int
) -> None:
    """SIGKILL while `step` is trained and a rollout of a later one is between two turns."""
    deadline_s = time.monotonic() + TIMEOUT_S
    with forked_training(home, settings, slow) as process:
        while time.monotonic() < deadline_s and process.is_running():
            try:
                if trains_while_it_collects(read(home), step):
                    return
            except (OSError, ValueError):
                pass  # the log is being made
            time.sleep(0.1)
    pytest.fail(f"step {step} was never trained beside a rollout of a later one")


@pytest.mark.parametrize(("policy", "killed_at"), [("oracle", (1, 2)), ("torch", (1,))])
def test_kills_in_the_overlap_lose_no_finished_rollout_and_leave_every_stream_whole(
    tmp_path: Path, policy: str, killed_at: tuple[int, ...]
) -> None:
    home = tmp_path / "home"
    settings = {
        **SMALL,
        "skip_baseline": True,
        "eval_every": 0,
        "eval_episodes": 2,
        "num_steps": NUM_STEPS,
        "max_turns": 5,
        "max_tokens": 8,
        "max_steps_off_policy": AT_MOST,
    }
    if policy == "torch":
        build_policy(tmp_path / "policy", TEXTS, seed=0, size=SIZE)
        settings["model_name"] = str(tmp_path / "policy")
        settings["renderer_name"] = "compact"
    slow = {"acting_s": 0.15, "update_s": 1.5}
    for step in killed_at:
        kill_in_overlap(home, settings, slow, step)
    killed = read(home)
    run(read_config(settings), installation=installation_at(home))
    events = read(home)
    assert violations(events, num_steps=NUM_STEPS, groups=2, group_size=3) == []
    assert sum(check_staleness(events, AT_MOST).values()) == NUM_STEPS * 2 * 3
    check_progress(events)
    # Whatever had finished is trained on, or its group taught nothing.
    finished = {event["subject"] for event in of_type(killed, "rollout.finished")}
    assert len(finished) >= 2 * 3 * len(killed_at)
    chosen = [f"rollout/{sample['rollout_id']}" for _, sample in samples(events)]
    assert finished <= {*chosen}
    assert len(chosen) == len({*chosen})

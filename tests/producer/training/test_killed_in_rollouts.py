"""A training killed while episodes are under way has the bits of an undisturbed one."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from consumers.errors import UnreachableError
from producer.agents.android.policy.build import build_policy
from producer.config import read_config
from producer.training.run import run
from tests.producer.policy.conftest import TEXTS
from tests.support.forked_process import forked_training
from tests.support.reading import installation_at, read_all
from tests.support.same_run import bits_of, differences
from tests.support.small_run import SMALL
from tests.support.small_size import SIZE

pytest.importorskip("torch")

TIMEOUT_S = 300.0
ACTING_S = 0.1
"""Mean of an action on a device; without it the oracle's run takes less than half a second."""
ENDS = {"cua.rollout.finished", "cua.rollout.failed", "cua.rollout.cancelled"}

Place = tuple[str, ...]
"""Generation, step or evaluation, group and place."""


def train(home: Path, settings: dict[str, Any]) -> None:
    """To its end, in this process."""
    run(read_config(settings), installation=installation_at(home))


def read(home: Path) -> list[dict[str, Any]]:
    return [json.loads(record.value) for record in read_all(installation_at(home))]


def turns_of(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["type"] == "cua.rollout.turn_taken"]


def places(events: list[dict[str, Any]], subjects: set[str]) -> set[Place]:
    return {
        tuple(event["data"]["rollout_id"].split("/")[1:5])
        for event in events
        if event["type"] == "cua.rollout.created" and event["subject"] in subjects
    }


def cut_off(events: list[dict[str, Any]]) -> set[Place]:
    """Places whose episode has taken turns and has no end."""
    ended = {event["subject"] for event in events if event["type"] in ENDS}
    return places(events, {turn["subject"] for turn in turns_of(events)} - ended)


def replayed(events: list[dict[str, Any]]) -> set[Place]:
    again = [turn for turn in turns_of(events) if turn["data"]["metrics"].get("replayed")]
    return places(events, {item["subject"] for item in again})


def kill_between_turns(home: Path, settings: dict[str, Any], num_turns: int) -> set[Place]:
    """SIGKILL once so many turns are in the log, while an episode has further ones to take.

    What counts is read after the kill: a commit that was being synced is not visible before, and
    recovered afterwards. When it ended every episode under way, the training goes on to a later
    kill.
    """
    deadline_s = time.monotonic() + TIMEOUT_S
    while is_killed_at(home, settings, num_turns, deadline_s):
        if places := cut_off(read(home)):
            return places
    pytest.fail(f"the process ended by itself, or had no episode under way at {num_turns} turns")


def is_killed_at(home: Path, settings: dict[str, Any], num_turns: int, deadline_s: float) -> bool:
    """False: the process ended by itself, or was not there by the deadline."""
    with forked_training(home, settings, {"acting_s": ACTING_S}) as process:
        while time.monotonic() < deadline_s and process.is_running():
            process.halt()
            try:
                events = read(home)
            except (OSError, ValueError, UnreachableError):
                events = []  # it was halted while it made the log, or held all of it
            if len(turns_of(events)) >= num_turns and cut_off(events):
                return True
            process.go_on()
            time.sleep(0.1)
    return False


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
    train(whole, settings)
    all_turns = len(turns_of(read(whole)))
    cut = [kill_between_turns(killed, settings, int(part * all_turns)) for part in (0.2, 0.5)]
    train(killed, settings)
    assert replayed(read(killed)) >= set.union(*cut)
    undisturbed = bits_of(whole, "small")
    assert {place[0] for place in undisturbed} >= {"turn", "reward", "sample", "cua.step.finished"}
    assert differences(undisturbed, bits_of(killed, "small")) == []

"""A training of skills in turn that is stopped goes on as if it had not been."""

import threading
from pathlib import Path
from typing import Any

import pytest

from producer.agents.dbbench.data.generate import generate
from producer.agents.dbbench.data.layout import write_entries
from producer.config import RunConfig, read_config
from producer.errors import StopRequestedError
from producer.training.run import run
from schemas.installation import Installation, read_installation
from schemas.session import SessionEnded
from schemas.skills import SkillsMeasured
from schemas.wire import decode
from tests.support.reading import read_all
from tests.support.small_run import watching

SKILLS = ("insert", "delete", "limit_only")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_entries(generate(66, 0, SKILLS), folder)
    return folder


def config(data: Path, **changes: object) -> RunConfig:
    return read_config(
        {
            "training_name": "turns",
            "model_name": "oracle",
            "oracle_noise": 0.4,
            "environment": "dbbench",
            "tasks": {"source_type": "dbbench", "path": str(data)},
            "eval_tasks": {"source_type": "dbbench", "path": str(data)},
            "groups_per_batch": 3,
            "skill_sequence": SKILLS,
            "steps_per_skill": 2,
            "replay_share": 0.3,
            "eval_every": 0,
            "eval_episodes": 9,
            **changes,
        }
    )


def home(path: Path) -> Installation:
    return read_installation({"CUA_HOME": str(path)})


def facts(installation: Installation) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """What was measured, in order, and how each session ended; without times."""
    measured: list[dict[str, Any]] = []
    sessions: dict[str, dict[str, Any]] = {}
    for record in read_all(installation):
        payload = decode(record.value).payload
        if isinstance(payload, SkillsMeasured):
            measured.append(payload.model_dump(exclude={"measured_at"}))
        if isinstance(payload, SessionEnded):
            sessions[str(record.key)] = payload.model_dump(exclude={"ended_at"})
    return measured, sessions


@pytest.mark.parametrize("after", ["step 1/6", "eval-2", "step 3/6", "step 6/6"])
def test_a_stopped_training_measures_and_replays_what_an_undisturbed_one_does(
    data: Path, tmp_path: Path, after: str
) -> None:
    whole, stopped = home(tmp_path / "whole"), home(tmp_path / "stopped")
    run(config(data), installation=whole)
    stop = threading.Event()

    def watch(line: str) -> None:
        if line.startswith(after):
            stop.set()

    with watching(watch), pytest.raises(StopRequestedError):
        run(config(data), installation=stopped, stop=stop)
    run(config(data), installation=stopped)
    expected_measured, expected = facts(whole)
    measured, sessions = facts(stopped)
    assert measured == expected_measured
    assert [item["stage"] for item in measured] == [0, 1, 2, 3]
    # A rollout that was under way is made again under another name.
    assert {name: sessions[name] for name in expected.keys() & sessions.keys()} == {
        name: expected[name] for name in expected.keys() & sessions.keys()
    }
    assert sorted(map(repr, sessions.values())) == sorted(map(repr, expected.values()))

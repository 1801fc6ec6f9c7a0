"""Tasks that a training recorded are tasks of the next one, through the command line alone."""

import json
from pathlib import Path

import pytest
from pydantic import JsonValue

from producer.agents.dbbench.data.tasks import task_of
from producer.emit import Emitter
from producer.errors import NotFoundError, UnreachableError
from producer.tasks.sources import load_tasks
from producer.tasks.statements import definition_hash, entry_fact, task_facts
from producer.training.run import run
from schemas import ids
from schemas.installation import read_installation
from tests.support.command import Call, call
from tests.support.example_run import TRAINING_CREATED, TRAINING_STREAM
from tests.support.small_run import small
from tests.support.sql_entries import DBBENCH

pytestmark = pytest.mark.services

__all__ = ["call"]

QUIET: dict[str, JsonValue] = {
    "task_id": "quiet",
    "description": "Mute the media.",
    "difficulty": "hard",
    "category": "sound",
    "validation_query": "media_volume",
    "expected": 0,
    "setup": ["cmd media_session volume --stream 3 --set 7"],
    "tags": ["a", "b"],
    "split": "eval",
    "max_steps": 3,
}
CUSTOM: JsonValue = {"source_type": "custom", "custom_tasks": [QUIET, "Open it"], "judge": "agent"}


def test_recorded_tasks_are_found_again_as_they_were_defined(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUA_HOME", str(tmp_path))
    ids: JsonValue = {
        "source_type": "ids",
        "task_ids": ["train_01_open_settings", "train_02_enable_wifi"],
    }
    given = load_tasks([ids, CUSTOM])
    with pytest.raises(NotFoundError, match="no recorded task that can be judged"):
        load_tasks({"source_type": "database"})
    run(
        small(tasks=[ids, CUSTOM], num_steps=1, groups_per_batch=4, skip_baseline=True),
        installation=read_installation({"CUA_HOME": str(tmp_path)}),
    )
    assert call("run", "--once").code == 0
    recorded = load_tasks({"source_type": "database"})
    assert {definition_hash(task) for task in recorded} == {definition_hash(task) for task in given}
    of_run = load_tasks({"source_type": "database", "training_name": "small", "category": "sound"})
    assert [task.task_id for task in of_run] == ["quiet"]
    two: JsonValue = {"source_type": "database", "limit": 2, "seed": 3}
    assert load_tasks(two) == load_tasks(two)
    assert len(load_tasks(two)) == 2

    listed = call("tasks", "--json", "--difficulty", "hard")
    (row,) = json.loads(listed.out)
    assert (row["task_id"], row["validator"]["setup"]) == ("quiet", QUIET["setup"])
    assert "open_it_" in call("tasks").out

    with pytest.raises(NotFoundError, match="the tables have no training 'none'"):
        load_tasks({"source_type": "database", "training_name": "none"})
    with pytest.raises(NotFoundError, match="no recorded task that can be judged has category 'x'"):
        load_tasks({"source_type": "database", "category": "x"})
    monkeypatch.setenv("DATABASE_URL", "postgresql://a:b@127.0.0.1:9/x")
    with pytest.raises(UnreachableError, match=r"tasks: cannot connect to PostgreSQL at"):
        load_tasks({"source_type": "database"})


def test_recorded_tasks_about_databases_are_found_again_with_their_entries(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUA_HOME", str(tmp_path))
    given = [task_of(entry) for entry in DBBENCH]
    with Emitter.open(read_installation({"CUA_HOME": str(tmp_path)})) as emitter:
        trainer = emitter.stream(TRAINING_STREAM)
        trainer.emit(TRAINING_CREATED)
        for task in given:
            stated, validator = task_facts(task)
            entry = entry_fact(task, ids.task_row_id(task.task_id, definition_hash(task)))
            for fact in (stated, validator, entry):
                assert fact is not None
                trainer.emit(fact)
    assert call("run", "--once").code == 0
    assert call("parked", "list", "--json").json == []

    recorded = load_tasks({"source_type": "database"})
    judged = load_tasks({"source_type": "database", "judge": "agent"})

    assert sorted(definition_hash(task) for task in recorded) == sorted(
        definition_hash(task) for task in given
    )
    assert {task.task_id: task.entry for task in recorded} == {
        task.task_id: task.entry for task in given
    }
    assert judged == recorded, "an environment judges them, whoever judges the others"

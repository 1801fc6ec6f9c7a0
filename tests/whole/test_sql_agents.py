"""Runs of both SQL agents by the oracle: every fact the trainer states is a row, none is parked."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from consumers.fold.fold import Fold
from consumers.fold.parse import parse_record
from consumers.fold.rows import Insert, Operation, Upsert
from consumers.fold.stream import Stream, new_stream
from producer.agents.dbbench.data.generate import generate
from producer.agents.dbbench.data.layout import write_entries
from producer.agents.text_to_sql.data.generate import SyntheticSize, write_synthetic
from producer.config import read_config
from producer.training.run import run
from schemas.installation import Installation, read_installation
from tests.support.reading import read_all

SMALL: dict[str, Any] = {"model_name": "oracle", "oracle_noise": 0.3, "num_steps": 2}
SKILLS = ("insert", "subquery_nested")


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return read_installation({"CUA_HOME": str(tmp_path / "home")})


def rows_of(installation: Installation) -> dict[str, list[dict[str, Any]]]:
    """The rows that the fold inserts, by table. Fails when a record is parked."""
    operations: list[Operation] = []
    records = read_all(installation)
    streams: dict[str, Stream] = {
        str(record.key): new_stream(str(record.key)) for record in records
    }
    fold = Fold(streams, log_id="local", write=operations.extend)
    batch = fold.take_all([parse_record(record) for record in records])
    assert [unapplied.reason for unapplied in batch.unapplied.values()] == []
    rows: dict[str, list[dict[str, Any]]] = {}
    for operation in operations:
        if isinstance(operation, Insert | Upsert):
            rows.setdefault(operation.table, []).append(dict(operation.row))
    return rows


def test_sessions_of_skills_in_turn_are_rows_with_their_entries_and_the_matrix(
    tmp_path: Path, installation: Installation
) -> None:
    write_entries(generate(44, 0), tmp_path / "data")
    source = {"source_type": "dbbench", "path": str(tmp_path / "data"), "skills": list(SKILLS)}
    config = read_config(
        {
            **SMALL,
            "environment": "dbbench",
            "tasks": source,
            "group_size": 1,
            "min_group_size": 1,
            "groups_per_batch": 4,
            "skill_sequence": SKILLS,
            "steps_per_skill": 1,
            "eval_every": 0,
            "eval_episodes": 12,
        }
    )
    summary = run(config, installation=installation)
    rows = rows_of(installation)
    # A baseline, an evaluation after each skill, and two steps of four. A greedy evaluation asks
    # each of the four entries once.
    assert len(rows["session"]) == 3 * 4 + 2 * 4
    entries = {row["id"]: row for row in rows["entry"]}
    assert {row["entry_id"] for row in rows["session"]} <= entries.keys()
    assert {row["outcome"] for row in rows["session"]} == {"correct", "incorrect"}
    stages = [(row["stage"], row["trained_skill"]) for row in rows["skill_success"]]
    assert {*stages} == {(0, None), (1, "insert"), (2, "subquery_nested")}
    last = {row["skill"]: row for row in rows["skill_success"] if row["stage"] == 2}
    assert {*SKILLS, "all"} <= last.keys()
    assert last["all"]["num_sessions"] == 4
    assert last["all"]["success_rate"] == summary.success_after
    # Counted again from sessions and entries.
    final = {row["evaluation_id"] for row in rows["skill_success"] if row["stage"] == 2}
    rollouts = {row["id"] for row in rows["rollout"] if row.get("eval_id") in final}
    right: Counter[str] = Counter()
    for session in rows["session"]:
        if session["id"] in rollouts and session["outcome"] == "correct":
            right.update(entries[session["entry_id"]]["skills"])
    assert {name: row["num_correct"] for name, row in last.items() if name != "all"} == {
        name: right[name] for name in last if name != "all"
    }


def test_completions_are_rows_with_what_their_sql_came_to(
    tmp_path: Path, installation: Installation
) -> None:
    size = SyntheticSize(num_train_databases=2, num_dev_databases=1, questions_per_template=1)
    write_synthetic(tmp_path / "data", seed=0, size=size)
    source = {"source_type": "text_to_sql", "path": str(tmp_path / "data")}
    config = read_config(
        {
            **SMALL,
            "environment": "text_to_sql",
            "tasks": source,
            "eval_tasks": {**source, "split": "dev"},
            "group_size": 3,
            "groups_per_batch": 2,
            "eval_every": 0,
            "eval_episodes": 10,
        }
    )
    run(config, installation=installation)
    rows = rows_of(installation)
    # Two greedy evaluations of the nine questions of dev, and two steps of two groups of three.
    assert len(rows["completion"]) == 2 * 9 + 2 * 2 * 3
    outcomes = Counter(row["outcome"] for row in rows["completion"])
    assert outcomes["correct"]
    assert outcomes["no_sql"] + outcomes["incorrect"] + outcomes["error"]
    assert all(
        row["outcome_reward"] == float(row["outcome"] == "correct") for row in rows["completion"]
    )
    assert {row["kind"] for row in rows["entry"]} == {"text_to_sql"}

"""Rollouts of SQL agents in what `export` writes."""

import json
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from consumers.cli import cli
from consumers.home import open_installation
from tests.support.logs import write_local_log
from tests.support.sql_runs import dbbench_run, text_to_sql_run

from .test_export import load, run


def write_sql_runs() -> None:
    path = open_installation(os.environ).local_log_path
    path.parent.mkdir(parents=True)
    write_local_log(path, [*dbbench_run(), *text_to_sql_run()])


@pytest.mark.slow
def test_datasets_opens_rollouts_without_screens_with_what_the_agent_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sql_runs()
    report = run(str(tmp_path / "dataset"))
    rollouts = load(tmp_path / "dataset", "rollouts", monkeypatch)
    turns = load(tmp_path / "dataset", "turns", monkeypatch)

    # 12 sessions in each of 4 evaluations and 3 in each of 3 steps; 2 completions of 2 questions.
    assert (report["rollouts"], report["turns"], report["missing_images"]) == (61, 118, 0)
    assert [row["screenshot"] for row in turns] == [None] * 118
    by_name = {row["rollout_id"]: row for row in rollouts}
    limited = by_name["dbbench-in-turn/g0/eval-1/group-0/env-1/attempt-0"]
    assert (limited["session_status"], limited["outcome"]) == ("task_limit_reached", "correct")
    assert (limited["entry"], limited["skills"]) == (
        "select_0001",
        ["select", "where_single_condition"],
    )
    assert limited["gold_sql"] == "SELECT `who` FROM wins WHERE year = 2001 -- the gold\n"
    assert limited["step_scores"] is None
    first, second = (row for row in turns if row["rollout_id"] == limited["rollout_id"])
    (action,) = json.loads(first["actions"])
    assert action["action"] == {"type": "execute_sql", "sql": limited["gold_sql"]}
    assert second["text"] == "[('Ann', 2001)]"
    wrong = by_name["text-to-sql/g0/step-1/group-0/env-1/attempt-0"]
    assert (wrong["session_status"], wrong["outcome"]) == (None, "incorrect")
    judged = json.loads(wrong["step_scores"])
    assert [item["scorer"] for item in judged] == ["policies/prm", "monte_carlo"]
    assert [step["score"] for step in judged[1]["steps"]] == [0.8125, 0.125, 0.0]
    assert by_name["text-to-sql/g0/step-1/group-1/env-1/attempt-0"]["answer"] is None


def test_conversations_without_screens_are_words_alone(tmp_path: Path) -> None:
    write_sql_runs()
    run(str(tmp_path / "conversations"), "--format", "openai")

    lines = (tmp_path / "conversations" / "conversations.jsonl").read_text().splitlines()
    row = next(item for item in map(json.loads, lines) if "/baseline-0/" in item["rollout_id"])
    assert [item["role"] for item in row["items"]] == ["user", "assistant"] * 2
    assert {part["type"] for item in row["items"] for part in item["content"]} == {
        "input_text",
        "output_text",
    }
    assert row["items"][2]["content"][0]["text"] == "[('Ann', 2001)]"


def test_an_export_without_a_rollout_says_so_and_has_the_columns(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    command = ["export", str(tmp_path / "dataset"), "--json"]
    result = CliRunner().invoke(cli, command, catch_exceptions=False)

    assert json.loads(result.stdout)["rollouts"] == 0
    assert "no rollout has ended: the dataset has no rows" in caplog.text
    turns = pq.read_table(tmp_path / "dataset" / "turns")
    assert turns.num_rows == 0
    assert "screenshot" in turns.column_names

"""Sessions in LifelongAgentBench's layout: what its own classes would read."""

import json
import os
from pathlib import Path
from typing import Literal

import pytest
from click.testing import CliRunner
from pydantic import BaseModel, ConfigDict

from consumers.commands.export import command
from consumers.home import open_installation
from tests.support.logs import write_local_log
from tests.support.sql_runs import dbbench_run, text_to_sql_run


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ChatHistoryItem(Strict):
    role: Literal["user", "agent"]
    content: str


class ChatHistory(Strict):
    value: list[ChatHistoryItem]


class EvaluationRecord(Strict):
    outcome: Literal["unset", "correct", "incorrect", "unknown", "ignored"]
    detail_dict: dict[str, float] | None


class Session(Strict):
    """As that system's `src/typings/session.py` has it."""

    task_name: str
    sample_index: int | str
    sample_status: Literal[
        "initial",
        "running",
        "completed",
        "agent_validation_failed",
        "task_limit_reached",
        "task_environment_error",
        "task_unknown_error",
        "agent_context_limit",
    ]
    chat_history: ChatHistory
    finish_reason: str | None
    task_output: dict[str, str | None] | None
    evaluation_record: EvaluationRecord


@pytest.fixture
def sessions(tmp_path: Path) -> list[Session]:
    path = open_installation(os.environ).local_log_path
    path.parent.mkdir(parents=True)
    write_local_log(path, [*dbbench_run(), *text_to_sql_run()])
    done = CliRunner().invoke(
        command, [str(tmp_path / "out"), "--format", "sessions", "--json"], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    read = [Session(**load) for load in json.loads((tmp_path / "out" / "runs.json").read_text())]
    assert json.loads(done.stdout)["rollouts"] == len(read)
    return read


def test_every_session_is_written_and_nothing_else(sessions: list[Session]) -> None:
    # 12 sessions in each of 4 evaluations and 3 in each of 3 steps; the completions of text-to-SQL
    # are none.
    assert len(sessions) == 57
    assert {session.task_name for session in sessions} == {"db_bench"}


def test_status_and_outcome_are_apart(sessions: list[Session]) -> None:
    found = {(session.sample_status, session.evaluation_record.outcome) for session in sessions}
    assert ("task_limit_reached", "correct") in found
    assert ("completed", "correct") in found


def test_users_and_agents_take_turns(sessions: list[Session]) -> None:
    for session in sessions:
        roles = [item.role for item in session.chat_history.value]
        assert roles == ["user", "agent"] * (len(roles) // 2)
    limited = next(session for session in sessions if session.sample_status == "task_limit_reached")
    assert limited.sample_index == "select_0001"
    assert limited.chat_history.value[2].content == "[('Ann', 2001)]"


def test_a_session_of_an_entry_that_the_log_does_not_state_has_the_entrys_id(
    tmp_path: Path,
) -> None:
    path = open_installation(os.environ).local_log_path
    path.parent.mkdir(parents=True)
    rollouts = [item for item in dbbench_run() if item.subject.startswith("rollout/")]
    write_local_log(path, rollouts)
    done = CliRunner().invoke(
        command, [str(tmp_path / "out"), "--format", "sessions"], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    told = {
        json.loads(rollout.value)["data"]["entry_id"]
        for rollout in rollouts
        if b'"type":"cua.session.ended"' in rollout.value
    }
    read = [Session(**load) for load in json.loads((tmp_path / "out" / "runs.json").read_text())]
    assert (len(read), {item.sample_index for item in read}) == (57, told)


def test_a_log_without_sessions_gives_an_empty_list(tmp_path: Path) -> None:
    path = open_installation(os.environ).local_log_path
    path.parent.mkdir(parents=True)
    write_local_log(path, text_to_sql_run())
    done = CliRunner().invoke(command, [str(tmp_path / "out"), "--format", "sessions"])
    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "out" / "runs.json").read_text()) == []

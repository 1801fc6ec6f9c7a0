"""Environments that answer in words: what is recorded, who judges, and how episodes end."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar
from uuid import UUID

import pytest

from producer.agents.dbbench.environment import DbBenchEnvironment
from producer.codecs.codec import parse_error
from producer.emit import Emitter
from producer.environments.environment import (
    ActionRefusedError,
    Environment,
    EnvironmentFailedError,
    TextObservation,
)
from producer.policy.policy import Completion, SampleRequest, context_full
from producer.resume.recorded_rollouts import recorded_turns
from producer.rollouts.engine import RolloutEngine
from producer.rollouts.plan import RolloutPlan, RolloutResult
from producer.sql_execution import Cell, DatabaseFailedError, Rows
from producer.task import Task
from producer.tasks.statements import definition, entry_fact, task_facts
from producer.validators.verdict import EndFacts, Evidence, Verdict
from schemas import ids
from schemas.actions import Action, Answer, ExecuteSql, Terminate
from schemas.base import Payload
from schemas.entry import Column, EntryContent, TableInfo
from schemas.rollout import RolloutFailed, RolloutFinished
from schemas.session import SessionEnded
from schemas.turn import TakenAction, TurnTaken
from schemas.validation import ValidationRecorded
from tests.producer.rollouts.conftest import ROLLOUT, payloads_of
from tests.support.scripted import SETTINGS, ScriptedPolicy, plan

P = TypeVar("P", bound=Payload)
ENTRY = EntryContent(kind="dbbench", entry_id="7", instruction="How many?", sql="select 3")
ASKED = replace(
    plan(0).task, description="How many?", validation_query=None, expected_result=None, entry=ENTRY
)


class Words:
    """Answers every query with its number; the right answer is the number of queries."""

    env_type, box_type, is_simulated = "words", "database", True
    ends_on_parse_error = True
    provider_id = "words-1"

    def __init__(self) -> None:
        self.num_queries = 0

    def failure_facts(self, evidence: Evidence, reason: str) -> EndFacts | None:  # noqa: ARG002
        return None

    def open(self, task: Task, seed: int) -> TextObservation:  # noqa: ARG002
        return TextObservation(None if seed == 7 else f"Table {seed}.")

    def act(self, action: Action) -> TextObservation:
        assert isinstance(action, ExecuteSql)
        self.num_queries += 1
        if action.sql == "refuse":
            message = "read only"
            raise ActionRefusedError(message)
        if action.sql == "die":
            message = "the server is gone"
            raise EnvironmentFailedError(message)
        if action.sql == "wrong":
            return TextObservation("no such column", error="no such column")
        return TextObservation(f"row {self.num_queries}")

    def shell(self, command: str) -> str:
        raise AssertionError(command)

    def judge(self, task: Task, evidence: Evidence) -> Verdict:
        assert task.entry is ENTRY
        answers = [
            action.action.text for action in evidence.actions if isinstance(action.action, Answer)
        ]
        found = answers[0] if answers else None

        def facts(entry_id: UUID, ended_at: datetime) -> tuple[Payload, ...]:
            return (
                SessionEnded(
                    entry_id=entry_id,
                    session_status="completed" if answers else "agent_validation_failed",
                    outcome="correct" if found == str(self.num_queries) else "incorrect",
                    answer=found,
                    table_hash=None,
                    num_rounds=evidence.num_turns,
                    num_operations=self.num_queries,
                    num_sql_errors=0,
                    ended_at=ended_at,
                ),
            )

        success = found == str(self.num_queries)
        return Verdict(success, "environment", None, found, facts=facts)

    def close(self) -> None:
        pass


class Scripted(ScriptedPolicy):
    """Answers with what a test wrote for each turn."""

    def __init__(self, *turns: tuple[Action, ...] | Completion) -> None:
        super().__init__(lambda _: None, has_tokens=True)
        self._turns = turns
        self.requests: list[SampleRequest] = []

    def sample(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        self.requests += requests
        return [self._of(request) for request in requests]

    def _of(self, request: SampleRequest) -> Completion:
        turn = self._turns[len(request.history)]
        if isinstance(turn, Completion):
            return turn
        taken = tuple(TakenAction(tool_name=item.type, tool_args={}, action=item) for item in turn)
        tokens = self._tokens(request)
        assert tokens is not None
        return Completion("said", taken, replace(tokens, num_prompt_images=0))


def asked_plan(seed: int = 7) -> RolloutPlan:
    row = task_facts(ASKED)[0].id
    entry = entry_fact(ASKED, row)
    assert entry is not None
    stated = replace(plan(0).stated, task=ASKED, row_id=row, entry_row_id=entry.id)
    return replace(plan(0), stated=stated, seed=seed)


def play(
    emitter: Emitter,
    policy: Scripted,
    asked: RolloutPlan | None = None,
    make_environment: Callable[[], Environment] = Words,
) -> tuple[RolloutResult, list[Payload]]:
    engine = RolloutEngine(
        policy=policy,
        make_environment=lambda _plan: make_environment(),
        settings=SETTINGS,
        max_concurrent=3,
        emitter=emitter,
        clock=lambda: datetime.now(UTC),
        on_begin=lambda _plan: None,
        check_stop=lambda: None,
    )
    engine.submit(asked or asked_plan())
    (result,) = engine.run()
    return result, payloads_of(emitter, ROLLOUT)


def of_type(payloads: Sequence[Payload], kind: type[P]) -> list[P]:
    return [payload for payload in payloads if isinstance(payload, kind)]


DONE = (Answer(text="1"), Terminate())


def test_turns_record_words_and_no_screen_and_the_policy_is_asked_with_them(
    emitter: Emitter,
) -> None:
    policy = Scripted((ExecuteSql(sql="select 1"),), DONE)
    result, payloads = play(emitter, policy)
    turns = of_type(payloads, TurnTaken)
    assert [turn.text for turn in turns] == ["How many?", "row 1"]
    assert [request.text for request in policy.requests] == [None, "row 1"]
    assert all(request.screenshot is None for request in policy.requests)
    assert {turn.screenshot_before for turn in turns} == {None}
    assert {turn.screenshot_after for turn in turns} == {None}
    assert {turn.screenshot_width_px for turn in turns} == {None}
    assert turns[0].actions[0].action == ExecuteSql(sql="select 1")
    assert result.success
    assert [turn.screenshot for turn in result.turns] == [None, None]


def test_what_the_environment_says_first_follows_the_instruction(emitter: Emitter) -> None:
    policy = Scripted(DONE)
    _, payloads = play(emitter, policy, asked_plan(seed=8))
    assert of_type(payloads, TurnTaken)[0].text == "How many?\n\nTable 8."
    assert policy.requests[0].text == "Table 8."


def test_the_environment_judges_and_states_the_end_in_its_own_terms(emitter: Emitter) -> None:
    result, payloads = play(emitter, Scripted((ExecuteSql(sql="select 1"),), DONE))
    (ended,) = of_type(payloads, SessionEnded)
    assert (ended.session_status, ended.outcome, ended.num_rounds) == ("completed", "correct", 2)
    assert ended.entry_id == asked_plan().stated.entry_row_id
    (verdict,) = of_type(payloads, ValidationRecorded)
    assert (verdict.success, verdict.actual_result, verdict.expected_result) == (True, "1", None)
    types = [type(payload) for payload in payloads]
    assert types.index(SessionEnded) < types.index(RolloutFinished)
    assert result.reward == pytest.approx(1 - 2 * SETTINGS.turn_cost)


def test_a_failed_action_is_recorded_with_its_error_and_told_to_the_agent(
    emitter: Emitter,
) -> None:
    policy = Scripted((ExecuteSql(sql="wrong"),), (ExecuteSql(sql="refuse"),), DONE)
    _, payloads = play(emitter, policy)
    turns = of_type(payloads, TurnTaken)
    assert [turn.actions[0].error_type for turn in turns] == ["runtime", "runtime", None]
    assert turns[0].actions[0].error_message == "no such column"
    # Refused: nothing has changed, what was said stands.
    assert [turn.text for turn in turns] == ["How many?", "no such column", "no such column"]


def test_a_completion_that_cannot_be_read_ends_the_episode_and_is_judged(emitter: Emitter) -> None:
    mumble = Completion("mumble", (parse_error("parse", "neither"),), None)
    result, payloads = play(emitter, Scripted(mumble, DONE))
    assert len(of_type(payloads, TurnTaken)) == 1
    assert of_type(payloads, SessionEnded)[0].session_status == "agent_validation_failed"
    assert not result.success
    assert not of_type(payloads, RolloutFailed)


def test_a_prompt_that_is_full_ends_the_episode_of_any_environment(
    emitter: Emitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Words, "ends_on_parse_error", False)
    policy = Scripted((ExecuteSql(sql="select 1"),), context_full("300 tokens, 256 fit"), DONE)
    result, payloads = play(emitter, policy)
    turns = of_type(payloads, TurnTaken)
    assert len(turns) == 2
    assert turns[1].actions[0].error_message == "300 tokens, 256 fit"
    assert len(result.turns) == 1
    assert not of_type(payloads, RolloutFailed)


def test_an_environment_that_dies_fails_the_attempt_and_states_no_end(emitter: Emitter) -> None:
    result, payloads = play(emitter, Scripted((ExecuteSql(sql="die"),)))
    assert not result.is_scored
    assert of_type(payloads, RolloutFailed)[0].error_type == "environment"
    assert not of_type(payloads, SessionEnded)


def test_recorded_words_are_played_again(emitter: Emitter) -> None:
    """From the log, as after a kill: the first turn's words lose the instruction again."""
    first = Scripted((ExecuteSql(sql="select 1"),), (ExecuteSql(sql="select 2"),), DONE)
    _, payloads = play(emitter, first, asked_plan(seed=8))
    taken = of_type(payloads, TurnTaken)
    turns = recorded_turns(taken, ASKED.description, pytest.fail)
    assert turns is not None
    assert [turn.observation for turn in turns] == [
        TextObservation("Table 8."),
        TextObservation("row 1"),
        TextObservation("row 2"),
    ]
    again = Scripted(DONE, DONE, DONE)
    name = ids.rollout_name("t", 0, "step-1", 0, 0, 1)
    later = replace(
        asked_plan(seed=8), name=name, id=ids.rollout_id(name), attempt=1, recorded=turns[:2]
    )
    result, _ = play(emitter, again, later)
    assert [len(request.history) for request in again.requests] == [2]
    assert result.num_turns == 3


def test_a_definition_names_its_entry_by_hash_and_other_tasks_keep_theirs() -> None:
    row = task_facts(ASKED)[0]
    stated = entry_fact(ASKED, row.id)
    assert stated is not None
    assert stated.content == ENTRY
    assert definition(ASKED)["entry"] == stated.content_hash
    assert stated.id == ids.entry_row_id(row.id, stated.content_hash)
    assert (row.validation_type, row.definition) == ("environment", definition(ASKED))
    other = replace(ASKED, entry=ENTRY.model_copy(update={"sql": "select 4"}))
    assert task_facts(other)[0].id != row.id
    assert "entry" not in definition(plan(0).task)
    assert entry_fact(plan(0).task, row.id) is None


class Dying:
    """A database that executes one statement and is then gone."""

    def __init__(self, table: TableInfo) -> None:
        self.num_executed = 0
        if table.name == "unbuildable":
            message = "the server refuses to make it"
            raise DatabaseFailedError(message)

    def execute(self, sql: str) -> Rows:
        self.num_executed += 1
        if self.num_executed > 1:
            message = f"the server is gone: {sql}"
            raise DatabaseFailedError(message)
        return Rows(("1",), ((1,),))

    def table_rows(self, table: str, columns: Sequence[str]) -> tuple[tuple[Cell, ...], ...]:
        message = f"the server is gone: {table} {columns}"
        raise DatabaseFailedError(message)

    def close(self) -> None:
        pass


def failed_session(emitter: Emitter, table: str, *turns: tuple[Action, ...]) -> list[Payload]:
    info = TableInfo(name=table, columns=(Column(name="id", type="INT"),), rows=())
    entry = ENTRY.model_copy(update={"table_info": info, "answer_md5": "0" * 32})
    task = replace(ASKED, entry=entry)
    row = task_facts(task)[0].id
    stated = entry_fact(task, row)
    assert stated is not None
    asked = asked_plan()
    result, payloads = play(
        emitter,
        Scripted(*turns),
        replace(asked, stated=replace(asked.stated, task=task, row_id=row, entry_row_id=stated.id)),
        lambda: DbBenchEnvironment(Dying),
    )
    assert not result.is_scored
    return payloads


QUERY = (ExecuteSql(sql="select 1"),)


@pytest.mark.parametrize(
    ("table", "turns", "num_operations", "reason"),
    [
        ("t", (QUERY, QUERY, DONE), 1, "gone: select 1"),
        ("t", (QUERY, DONE), 1, "gone: t"),
        ("unbuildable", (DONE,), 0, "refuses"),
    ],
    ids=["a statement", "the judging", "the opening"],
)
def test_a_session_whose_database_fails_ends_by_its_environment_and_comes_to_nothing(
    emitter: Emitter,
    table: str,
    turns: tuple[tuple[Action, ...], ...],
    num_operations: int,
    reason: str,
) -> None:
    payloads = failed_session(emitter, table, *turns)
    (ended,) = of_type(payloads, SessionEnded)
    assert (ended.session_status, ended.outcome) == ("task_environment_error", "unknown")
    assert ended.num_operations == num_operations
    assert reason in str(ended.error_message)
    assert isinstance(payloads[-1], RolloutFailed)
    assert payloads[-1].error_type == "environment"
    assert not of_type(payloads, ValidationRecorded)

"""Queries of what SQL agents did, on the rows of two hand-written trainings."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.orm import Session

import consumers.queries as q
from consumers.projection.loop import ProjectionLoop
from schemas import ids
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.postgres import PostgresServer
from tests.support.sql_entries import DBBENCH, SKILLS
from tests.support.sql_runs import dbbench_run, text_to_sql_run

pytestmark = pytest.mark.services

IN_TURN, QUESTIONS = ids.training_id("dbbench-in-turn"), ids.training_id("text-to-sql")


@pytest.fixture(scope="module")
def engine(postgres: PostgresServer, migrated_template: str) -> Iterator[Engine]:
    name = postgres.create(migrated_template)
    log = MemoryLog()
    for item in [*dbbench_run(), *text_to_sql_run()]:
        log.append(item.subject, item.value)
    ProjectionLoop(MemoryReader(log), postgres.url(name)).run_once()
    engine = create_engine(postgres.url(name))
    yield engine
    engine.dispose()
    postgres.drop(name)


@pytest.fixture
def session(engine: Engine) -> Iterator[Session]:
    with Session(engine) as session:
        yield session


def test_sessions_are_listed_by_training_status_and_outcome(session: Session) -> None:
    # 4 evaluations of 12 sessions and 3 steps of 3.
    everything = q.list_sessions(session, IN_TURN)
    assert len(everything) == 57
    assert [item.end_time for item in everything] == sorted(item.end_time for item in everything)
    assert list(q.list_sessions(session)) == list(everything)
    assert q.list_sessions(session, QUESTIONS) == []
    # Solved: 1 + 5 + 8 + 9 in the evaluations, 1 + 2 + 3 in the steps.
    correct = q.list_sessions(session, IN_TURN, outcome="correct")
    assert len(correct) == 29
    # One is out of rounds where a skill has two solved sessions or more: 0 + 1 + 2 + 3.
    limited = q.list_sessions(session, outcome="correct", session_status="task_limit_reached")
    assert len(limited) == 6
    of_entry = q.list_sessions(session, entry_id=limited[0].entry_id)
    assert len(of_entry) == 19


def test_a_session_leads_to_its_entry_and_the_entry_to_its_task(session: Session) -> None:
    found = q.get_rollout_by_rollout_id(
        session, "dbbench-in-turn/g0/step-1/group-1/env-0/attempt-0"
    )
    assert found is not None
    ended = q.get_session_by_rollout(session, found.id)
    assert ended is not None
    assert (ended.session_status, ended.outcome) == ("agent_validation_failed", "incorrect")
    entry = q.get_entry(session, ended.entry_id)
    assert entry is not None
    assert (entry.entry_id, entry.skills) == ("insert_0002", ["insert"])
    assert entry.table_name == "wins"
    assert entry.rows_json == [list(row) for row in DBBENCH[1].table_info.rows]  # type: ignore[union-attr]  # it has a table
    assert q.list_entries_by_task(session, found.task_id) == [entry]
    assert q.get_completion_by_rollout(session, found.id) is None


def test_completions_are_listed_with_both_scorers_opinions(session: Session) -> None:
    assert [
        list_completion.outcome for list_completion in q.list_completions(session, QUESTIONS)
    ] == [
        "correct",
        "incorrect",
        "error",
        "no_sql",
    ]
    assert q.list_completions(session, IN_TURN) == []
    (wrong,) = q.list_completions(session, outcome="incorrect")
    by_monte_carlo, by_model = q.list_scores_by_completion(session, wrong.id)
    assert [by_monte_carlo.whole.scorer, by_model.whole.scorer] == ["monte_carlo", "policies/prm"]
    assert [step.score for step in by_model.steps] == [0.9375, 0.25, 0.125]
    assert by_model.whole.product == 0.9375 * 0.25 * 0.125
    assert (by_model.whole.minimum, by_model.whole.last) == (0.125, 0.125)
    assert by_model.whole.average == 0.4375
    (no_sql,) = q.list_completions(session, outcome="no_sql")
    assert q.list_scores_by_completion(session, no_sql.id) == []


def test_success_by_skill_is_listed_by_step_and_leaves_out_what_was_superseded(
    engine: Engine,
) -> None:
    with Session(engine) as session:
        every = q.success_by_skill(session, IN_TURN)
        assert [(item.step, item.skill) for item in every[:4]] == [
            (0, "all"),
            (0, "group_by_single_column"),
            (0, "insert"),
            (0, "select"),
        ]
        assert [
            (item.step, item.success_rate)
            for item in q.success_by_skill(session, IN_TURN, skill="select")
        ] == [(0, 0.25), (1, 1.0), (2, 0.75), (3, 0.5)]
        session.execute(text("UPDATE eval SET superseded = true WHERE step = 2"))
        kept = q.success_by_skill(session, IN_TURN, skill="select")
        assert [item.step for item in kept] == [0, 1, 3]
        again = q.success_by_skill(session, IN_TURN, skill="select", generation=0)
        assert [item.step for item in again] == [0, 1, 2, 3]
        assert q.success_by_skill(session, IN_TURN, generation=1) == []
        session.rollback()


def test_forgetting_and_backward_transfer_are_those_worked_out_by_hand(session: Session) -> None:
    # After stage   0    1    2    3
    # select       .25   1   .75  .5    best before the last 1: forgot .5; was 1 when trained: -.5
    # insert        0   .25   1   .75   best before the last 1: forgot .25; was 1: -.25
    # group by      0    0   .25   1    trained last: nothing came after it
    matrix = q.skill_matrix(q.success_by_skill(session, IN_TURN))
    assert matrix is not None
    assert matrix.stages == (0, 1, 2, 3)
    assert matrix.skills == SKILLS
    assert matrix.trained == {1: "select", 2: "insert", 3: "group_by_single_column"}
    assert [matrix.rates[stage, "insert"] for stage in matrix.stages] == [0.0, 0.25, 1.0, 0.75]
    assert [matrix.forgetting(skill) for skill in SKILLS] == [0.5, 0.25, None]
    assert [matrix.backward_transfer(skill) for skill in SKILLS] == [-0.5, -0.25, None]
    assert matrix.average_forgetting == 0.375
    assert matrix.average_backward_transfer == -0.375


def test_without_stages_there_is_no_matrix(session: Session) -> None:
    assert q.skill_matrix(q.success_by_skill(session, QUESTIONS)) is None

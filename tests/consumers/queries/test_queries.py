"""The query functions, on the sample's rows in a real PostgreSQL."""

import os
from collections.abc import Iterator
from uuid import uuid4

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.orm import Session

import consumers.queries as q
from consumers.errors import CuaProjectError, UnreachableError
from consumers.tables import Annotation, Training
from tests.support.postgres import PostgresServer
from tests.support.sample_rows import at, named, write_sample

pytestmark = pytest.mark.services


@pytest.fixture(scope="module")
def engine(postgres: PostgresServer, migrated_template: str) -> Iterator[Engine]:
    name = postgres.create(migrated_template)
    engine = create_engine(postgres.url(name))
    with Session(engine) as session:
        write_sample(session)
    yield engine
    engine.dispose()
    postgres.drop(name)


@pytest.fixture
def session(engine: Engine) -> Iterator[Session]:
    with Session(engine) as session:
        yield session


def test_trainings_are_found_by_id_and_by_name_and_listed_newest_first(session: Session) -> None:
    demo = q.get_training_by_run_name(session, "demo")
    assert demo is not None
    assert q.get_training(session, demo.id) is demo
    assert q.get_training_by_run_name(session, "unknown") is None
    assert [training.run_name for training in q.list_trainings(session)] == ["demo", "older"]
    assert [training.run_name for training in q.list_trainings(session, status="completed")] == [
        "older"
    ]


def annotated(name: str, epoch: int, sequence: int, **columns: object) -> Annotation:
    defaults: dict[str, object] = {"display_name": None, "tags": [], "note": None, "hidden": False}
    return Annotation(
        id=uuid4(),
        training_id=named(name),
        epoch=epoch,
        sequence=sequence,
        created_at=at(0),
        **(defaults | columns),
    )


def test_the_annotation_stated_last_counts_and_hides_a_training_from_lists(engine: Engine) -> None:
    with Session(engine) as session:
        assert q.get_annotation(session, named("demo")) is None
        session.add_all(
            [
                annotated("demo", 2, 1, display_name="Second", tags=["x"], hidden=True),
                annotated("demo", 1, 7, display_name="First"),
                annotated("older", 1, 1, hidden=True),
                annotated("older", 1, 2),
            ]
        )
        session.flush()
        newest = q.get_annotation(session, named("demo"))
        assert newest is not None
        assert (newest.display_name, newest.tags) == ("Second", ["x"])
        counting = {
            list_annotation.training_id: list_annotation.display_name
            for list_annotation in q.list_annotations(session)
        }
        assert counting == {named("demo"): "Second", named("older"): None}
        assert [list_training.run_name for list_training in q.list_trainings(session)] == ["older"]
        every = q.list_trainings(session, include_hidden=True)
        assert [item.run_name for item in every] == ["demo", "older"]
        said = every[0].annotations
        assert [item.display_name for item in said] == ["First", "Second"]
        session.rollback()


def test_without_a_generation_what_a_newer_one_trains_again_is_left_out(session: Session) -> None:
    training = named("demo")
    assert [step.id for step in q.list_steps_by_training(session, training)] == [
        named("step-1"),
        named("step-2-again"),
        named("step-3"),
    ]
    assert [step.id for step in q.list_steps_by_training(session, training, generation=0)] == [
        named("step-1"),
        named("step-2"),
    ]
    newest, oldest = (
        q.get_step_by_training_and_step(session, training, 2, generation)
        for generation in (None, 0)
    )
    assert newest is not None
    assert oldest is not None
    assert (newest.id, oldest.id) == (named("step-2-again"), named("step-2"))
    evaluation, old = (
        q.get_eval_by_training_and_step(session, training, 2, generation)
        for generation in (None, 0)
    )
    assert evaluation is not None
    assert old is not None
    assert (evaluation.success_rate, old.success_rate) == (1.0, 0.25)
    assert [row.id for row in q.list_evals_by_training(session, training)] == [
        named("eval-2-again")
    ]
    assert [row.id for row in q.list_baselines_by_training(session, training)] == [
        named("baseline")
    ]


def test_the_latest_completed_step_is_not_one_that_still_trains(session: Session) -> None:
    latest = q.get_latest_completed_step(session, named("demo"))
    assert latest is not None
    assert latest.id == named("step-2-again")
    assert q.get_latest_completed_step(session, named("older")) is None


def test_a_task_by_its_text_id_is_the_definition_stated_last(session: Session) -> None:
    task = q.get_task_by_task_id(session, "wifi")
    assert task is not None
    assert task.description == "Turn Wi-Fi on."
    assert q.get_task(session, named("task-older")) is not None
    assert [row.id for row in q.list_tasks(session)] == [named("task"), named("task-older")]
    assert list(q.list_tasks(session, category="input")) == []
    assert [row.id for row in q.list_validators_by_task(session, named("task"))] == [
        named("validator")
    ]


def test_rollouts_are_listed_by_each_of_their_owners(session: Session) -> None:
    both = [named("rollout-0"), named("rollout-1")]
    assert [row.id for row in q.list_rollouts_by_step(session, named("step-1"))] == both
    assert [row.id for row in q.list_rollouts_by_group(session, named("group-0"))] == both
    assert [row.id for row in q.list_rollouts_by_eval(session, named("eval-2-again"))] == [
        named("rollout-e")
    ]
    assert [row.id for row in q.list_rollouts_by_baseline(session, named("baseline"))] == [
        named("rollout-b")
    ]
    assert len(q.list_rollouts_by_task(session, named("task"))) == 4
    rollout = q.get_rollout_by_rollout_id(session, "rollout-1")
    assert rollout is not None
    assert rollout.id == named("rollout-1")


def test_groups_are_listed_by_their_source(session: Session) -> None:
    assert [row.id for row in q.list_groups_by_step(session, named("step-1"))] == [
        named("group-0"),
        named("group-1"),
    ]
    assert [row.id for row in q.list_groups_by_eval(session, named("eval-2-again"))] == [
        named("group-e")
    ]
    assert [row.id for row in q.list_groups_by_baseline(session, named("baseline"))] == [
        named("group-b")
    ]


def test_a_rollout_leads_to_its_turns_actions_observations_and_environment(
    session: Session,
) -> None:
    turns = q.list_turns_by_rollout(session, named("rollout-1"))
    assert [turn.turn for turn in turns] == [1]
    assert [action.action_type for action in q.list_actions_by_turn(session, turns[0].id)] == [
        "click"
    ]
    assert [seen.obs_type for seen in q.list_observations_by_turn(session, turns[0].id)] == [
        "screenshot_before",
        "text",
    ]
    environment = q.get_environment_by_rollout(session, named("rollout-1"))
    assert environment is not None
    assert environment.env_type == "android_sim"
    assert q.get_environment_by_rollout(session, uuid4()) is None


def test_the_verdict_of_the_highest_rank_counts_although_it_came_first(session: Session) -> None:
    verdict = q.get_validation_by_rollout(session, named("rollout-1"))
    assert verdict is not None
    assert (verdict.rank, verdict.success) == (5, True)


def test_status_history_is_newest_first_across_epochs(session: Session) -> None:
    history = q.get_status_history(session, "training", named("demo"))
    assert [(row.epoch, row.sequence, row.new_status) for row in history] == [
        (2, 1, "running"),
        (1, 9, "initializing"),
        (1, 1, "pending"),
    ]
    assert q.get_status_history(session, "training", named("demo"), limit=2) == history[:2]


def test_the_orm_leads_from_a_training_to_its_turns(session: Session) -> None:
    training = q.get_training_by_run_name(session, "demo")
    assert training is not None
    rollouts = training.steps[0].groups[0].rollouts
    assert [rollout.rollout_id for rollout in rollouts] == ["rollout-0", "rollout-1"]
    assert [turn.turn for turn in rollouts[1].turns] == [1]


def test_get_session_works_with_and_without_a_with(migrated_url: str) -> None:
    engine = q.init_database(migrated_url)
    try:
        with q.get_session() as session:
            write_sample(session)
        plain = q.get_session()
        assert plain.get(Training, named("demo")) is not None
        plain.close()
    finally:
        engine.dispose()


def test_an_empty_database_is_migrated_and_a_foreign_one_only_when_asked(
    postgres: PostgresServer,
) -> None:
    name = postgres.create()
    url = postgres.url(name)
    try:
        engine = create_engine(url)
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE public.somebody_elses (id int)"))
        with pytest.raises(CuaProjectError, match="migrate=True"):
            q.init_database(url)
        q.init_database(url, migrate=True).dispose()
        with q.get_session() as session:
            assert list(q.list_trainings(session)) == []
        engine.dispose()
    finally:
        postgres.drop(name)


def test_an_empty_database_needs_no_word_to_be_migrated(database_url: str) -> None:
    with pytest.raises(CuaProjectError, match="migrate"):
        q.init_database(database_url, migrate=False)
    q.init_database(database_url).dispose()
    with q.get_session() as session:
        assert list(q.list_trainings(session)) == []


def test_the_installations_database_is_taken_when_none_is_named(
    migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        os.environ, "DATABASE_URL", migrated_url.replace("postgresql+psycopg2", "postgresql")
    )
    engine = q.init_database()
    assert engine.url.render_as_string(hide_password=False) == migrated_url
    engine.dispose()


def test_a_database_that_does_not_answer_is_an_error_without_its_password() -> None:
    with pytest.raises(UnreachableError) as caught:
        q.init_database("postgresql://someone:s3cret@127.0.0.1:1/nowhere")
    assert "s3cret" not in str(caught.value)

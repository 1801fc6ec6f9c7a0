"""Whose the rows of SQL agents are, and what of an entry its id proves."""

from dataclasses import replace
from datetime import UTC, datetime
from math import inf, nan
from uuid import UUID

import pytest

from consumers.fold.fold import Fold
from consumers.fold.parse import parse_record
from consumers.fold.stream import Stream
from consumers.fold.unapplied import Unapplied
from consumers.log.reader import LogRecord
from producer.agents.android.demo_tasks import demo_tasks
from producer.tasks.statements import entry_fact, task_facts
from schemas import ids
from schemas.base import Payload
from schemas.completion import CompletionExecuted, CompletionStepsScored, StepScore
from schemas.entry import Column, EntryContent, EntryStated, TableInfo, entry_hash
from schemas.session import SessionEnded
from schemas.skills import SkillsMeasured, SkillSuccess
from schemas.wire import encode

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
TRAINING, OTHER = ids.training_id("a"), ids.training_id("b")
ENTRY = EntryContent(
    kind="dbbench",
    entry_id="1",
    instruction="Count.",
    table_info=TableInfo(
        name="t",
        columns=(Column(name="x", type="INT"),),
        rows=((1,), (1.0,), (-0.0,), (None,), (nan,), (-inf,), ("nul\x00 ü😀",), (10**40,)),
    ),
    skills=("select",),
)
TASK = replace(demo_tasks()[1], entry=ENTRY, validation_query=None, expected_result=None)


def unapplied_after(*events: tuple[str, Payload]) -> list[Unapplied]:
    """What is not applied, each stream in its first epoch, the events as bytes of a log."""
    streams: dict[str, Stream] = {}
    fold = Fold(streams, log_id="log")
    sequences: dict[str, int] = {}
    for offset, (subject, payload) in enumerate(events):
        sequences[subject] = sequences.get(subject, 0) + 1
        value = encode(
            payload,
            id=ids.uuid7(BEGAN),
            source="//a",
            time=BEGAN,
            subject=subject,
            epoch=1,
            sequence=sequences[subject],
        )
        fold.take_all([parse_record(LogRecord("t", 0, offset, subject, value, BEGAN))])
    return list(fold.batch.unapplied.values())


def stated() -> EntryStated:
    """As a trainer states it."""
    task, _ = task_facts(TASK)
    fact = entry_fact(TASK, task.id)
    assert fact is not None
    return fact


def test_what_a_trainer_states_of_a_task_with_an_entry_is_applied() -> None:
    task, validator = task_facts(TASK)
    assert validator is not None
    said = [task, validator, stated()]
    assert unapplied_after(*((f"training/{TRAINING}", item) for item in said)) == []
    assert task.definition is not None
    assert task.definition["entry"] == stated().content_hash
    # Another training, or an evaluation of its own, may state it again.
    owners = (f"training/{TRAINING}", f"training/{OTHER}", f"evaluation/{OTHER}")
    assert unapplied_after(*((owner, stated()) for owner in owners)) == []


@pytest.mark.parametrize(
    "changed",
    [
        {"id": TRAINING},
        {"task_id": TRAINING},
        {"content_hash": "ab" * 32},
        {"content": ENTRY.model_copy(update={"sql": "SELECT 1"})},
        {"content": ENTRY.model_copy(update={"skills": ()})},
    ],
)
def test_an_entry_with_other_content_than_its_id_hashes_is_parked(
    changed: dict[str, object],
) -> None:
    fact = stated().model_copy(update=changed)
    assert [unapplied.kind for unapplied in unapplied_after((f"training/{TRAINING}", fact))] == [
        "invalid"
    ]


def test_an_entry_keeps_its_hash_when_later_code_has_more_optional_fields() -> None:
    class LaterContent(EntryContent):
        hint: str | None = None

    written = ENTRY.model_dump_json()
    assert entry_hash(LaterContent.model_validate_json(written)) == entry_hash(ENTRY)
    assert entry_hash(EntryContent.model_validate_json(written)) == entry_hash(ENTRY)


ENDED = SessionEnded(
    entry_id=TRAINING,
    session_status="completed",
    outcome="correct",
    answer="1",
    table_hash=None,
    num_rounds=1,
    num_operations=0,
    num_sql_errors=0,
    ended_at=BEGAN,
)
EXECUTED = CompletionExecuted(
    entry_id=TRAINING,
    sql=None,
    num_steps=0,
    outcome="no_sql",
    outcome_reward=0.0,
    executed_at=BEGAN,
)
STEP = StepScore(index=0, text="SELECT 1", first_token=0, last_token=1, score=0.5)


def scored(*steps: StepScore, scorer: str = "prm") -> CompletionStepsScored:
    return CompletionStepsScored(
        scorer=scorer,
        steps=steps,
        product=0.5,
        minimum=0.5,
        last=0.5,
        average=0.5,
        scored_at=BEGAN,
    )


def measured(*skills: str) -> SkillsMeasured:
    every = [
        SkillSuccess(skill=skill, num_sessions=2, num_correct=1, success_rate=0.5)
        for skill in skills
    ]
    return SkillsMeasured(
        evaluation_id=ids.eval_id(TRAINING, 0, 1),
        generation=0,
        step=1,
        skills=tuple(every),
        measured_at=BEGAN,
    )


@pytest.mark.parametrize("payload", [ENDED, EXECUTED, scored(STEP)], ids=lambda item: item.TYPE)
def test_a_rollout_says_once_what_it_came_to_and_nobody_else_says_it(payload: Payload) -> None:
    rollout, other = f"rollout/{TRAINING}", f"rollout/{OTHER}"
    assert unapplied_after((rollout, payload), (other, payload)) == []
    (unapplied,) = unapplied_after((rollout, payload), (rollout, payload))
    assert (unapplied.kind, "second time" in unapplied.reason) == ("invalid", True)
    for stranger in (f"training/{TRAINING}", f"evaluation/{TRAINING}", f"scoring/{TRAINING}"):
        (unapplied,) = unapplied_after((stranger, payload))
        assert "it belongs in a stream of rollout" in unapplied.reason


def test_several_scorers_judge_a_completion_once_each_and_every_step_once() -> None:
    rollout = f"rollout/{TRAINING}"
    another = STEP.model_copy(update={"index": 1})
    every = [scored(STEP, another), scored(STEP, another, scorer="monte_carlo")]
    assert unapplied_after(*((rollout, item) for item in every)) == []
    assert len(unapplied_after((rollout, scored(STEP, STEP)))) == 1


def test_success_by_skill_is_a_trainings_own_whatever_evaluation_it_names() -> None:
    said = measured("all", "select")
    # Another training names the same evaluation: rows of its own.
    assert unapplied_after((f"training/{TRAINING}", said), (f"training/{OTHER}", said)) == []
    (unapplied,) = unapplied_after((f"training/{TRAINING}", said), (f"training/{TRAINING}", said))
    assert "second time" in unapplied.reason
    for odd in ("a\x00", "é" * 501):
        assert len(unapplied_after((f"training/{TRAINING}", measured(odd)))) == 1
    (unapplied,) = unapplied_after((f"evaluation/{UUID(int=1)}", said))
    assert "it belongs in a stream of training" in unapplied.reason

"""A row belongs to the stream that made it: nobody else's event changes it."""

import json
from typing import get_args
from uuid import UUID

import pytest
from pydantic import BaseModel

from consumers.fold.fold import Fold
from consumers.fold.ownership import owned_entities
from consumers.fold.parse import parse_record
from consumers.fold.stream import Stream, new_stream
from consumers.fold.unapplied import Unapplied
from consumers.log.reader import LogRecord
from producer.agents.android.demo_tasks import demo_tasks
from producer.tasks.statements import task_facts
from schemas import ids
from schemas.base import Payload
from schemas.catalogue import PAYLOADS
from schemas.decision import lone_stream
from schemas.evaluation import EvaluationCreated
from schemas.group import GroupCreated, SourceType
from schemas.task import TaskStated, ValidatorStated
from schemas.validation import ValidationRecorded
from schemas.wire import decode, encode
from tests.support.memory_log import BEGAN
from tests.support.paths import GOLDEN_EVENTS

TRAINING = ids.training_id("a")
TASK = demo_tasks()[1]

OWN = {
    "StepProgressed": {"step_id"},
    "SamplesChosen": {"step_id"},
    "GroupProgressed": {"group_id"},
    "GroupDropped": {"group_id"},
    "StepSuperseded": {"step_id", "group_ids"},
    "EvaluationSuperseded": {"group_ids"},
    "CheckpointSaved": {"step_id"},
}
"""Looked up: in the stream's memory, or in the rows."""
TRANSITIONS = {
    "StepCollectionStarted": {"step_id"},
    "StepRolloutsStarted": {"step_id"},
    "StepTrainingStarted": {"step_id"},
    "StepFinished": {"step_id"},
    "StepFailed": {"step_id"},
    "GroupStarted": {"group_id"},
    "GroupFinished": {"group_id"},
    "GroupFailed": {"group_id"},
}
"""Refused by the state machine, which knows only what the stream has created."""
RECOMPUTED = {
    "StepCreated": {"step_id"},
    "GroupCreated": {"group_id", "source_id"},
    "TaskStated": {"id"},
    "EntryStated": {"id"},
    "ValidatorStated": {"id"},
    "ValidationRecorded": {"rollout_id"},
    "EvaluationCreated": {"training_id"},
    "TrainingAnnotated": {"training_id"},
    "ScoringCreated": {"training_id"},
}
"""Compared with the hash of the natural key, which has the owner, or with the owner itself."""
REFERENCES = {
    "SamplesChosen": {"samples.rollout_id", "samples.group_id"},
    "GroupFinished": {"rollout_ids"},
    "RolloutCreated": {"source_id", "group_id", "task_id"},
    "RolloutEnvironmentRequested": {"env_id"},
    "ValidationRecorded": {"validator_id"},
    "ValidatorStated": {"task_id"},
    "EntryStated": {"task_id"},
    "SessionEnded": {"entry_id"},
    "CompletionExecuted": {"entry_id"},
    "SkillsMeasured": {"evaluation_id"},
    "RolloutScored": {"rollout_id"},
}
"""Point at rows of other streams and change none."""


def id_fields(owner: type[BaseModel], prefix: str = "") -> set[str]:
    """Every field that is an id or has ids."""
    found = set()
    for name, field in owner.model_fields.items():
        parts = [field.annotation]
        while parts:
            part = parts.pop()
            parts += get_args(part)
            if part is UUID:
                found.add(prefix + name)
            elif isinstance(part, type) and issubclass(part, BaseModel):
                found |= id_fields(part, f"{prefix}{name}.")
    return found


def test_every_id_in_every_event_is_held_to_its_owner_or_only_a_reference() -> None:
    for payload in PAYLOADS:
        name = payload.__name__
        known = [rule.get(name, set()) for rule in (OWN, TRANSITIONS, RECOMPUTED, REFERENCES)]
        assert id_fields(payload) == set().union(*known), name
        assert payload.STATUS is not None or name not in TRANSITIONS


@pytest.mark.parametrize("name", OWN)
def test_ids_that_cannot_be_recomputed_are_looked_up(name: str) -> None:
    golden = (
        decode(path.read_bytes()) for path in sorted(GOLDEN_EVENTS.glob("*.json"), reverse=True)
    )
    envelope, payload = next(item for item in golden if type(item.payload).__name__ == name)

    found = {
        owned_entity.id for owned_entity in owned_entities(new_stream(envelope.subject), payload)
    }

    for field in OWN[name]:
        value = getattr(payload, field)
        assert found >= {str(item) for item in (value if isinstance(value, tuple) else [value])}


def take(*events: tuple[str, Payload], training: UUID | None = None) -> list[Unapplied]:
    """What is not applied after these events, each stream in its first epoch."""
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
            training_id=training,
        )
        record = LogRecord("t", 0, offset, subject, value, BEGAN)
        fold.take_all([parse_record(record)])
    return list(fold.batch.unapplied.values())


def stated(**changed: object) -> TaskStated:
    task, _ = task_facts(TASK)
    return task.model_copy(update=changed)


OTHER_VALUES: dict[str, object] = {
    "id": ids.task_row_id("x", "y"),
    "max_steps": 99,
    "tags": ("x",),
    "prerequisites": ("x",),
    "definition": {"task_id": TASK.task_id},
    "difficulty": "hard",
    "validation_type": None,
}


@pytest.mark.parametrize("name", TaskStated.model_fields)
def test_a_task_with_other_content_than_its_id_hashes_is_parked(name: str) -> None:
    training = f"training/{TRAINING}"
    assert take((training, stated())) == []
    (unapplied,) = take((training, stated(**{name: OTHER_VALUES.get(name, "other")})))
    assert unapplied.kind == "invalid"
    definition = stated().model_dump(mode="json")["definition"]
    if name in definition:
        definition[name] = OTHER_VALUES.get(name, "other")
        both = stated(**{name: OTHER_VALUES.get(name, "other"), "definition": definition})
        assert [unapplied.kind for unapplied in take((training, both))] == ["invalid"]


@pytest.mark.parametrize("name", ValidatorStated.model_fields)
def test_a_validator_with_other_content_than_its_id_hashes_is_parked(name: str) -> None:
    _, validator = task_facts(TASK)
    assert validator is not None
    training = f"training/{TRAINING}"
    assert take((training, validator)) == []
    other: dict[str, object] = {"id": TRAINING, "task_id": TRAINING, "config": {}}
    changed = validator.model_copy(update={name: other.get(name, "other")})
    assert [unapplied.kind for unapplied in take((training, changed))] == ["invalid"]


def verdict(rollout: UUID) -> ValidationRecorded:
    return ValidationRecorded(
        rollout_id=rollout,
        validator_id=ids.validator_row_id([]),
        validated_at=BEGAN,
        validation_query="q",
        expected_result=None,
        actual_result=None,
        success=True,
        execution_time_s=1.0,
    )


def test_a_rollout_judges_itself_alone_and_a_scoring_of_its_uuid_has_rows_of_its_own() -> None:
    rollout, other = ids.rollout_id("a"), ids.rollout_id("b")
    unapplied = take(
        (f"scoring/{rollout}", verdict(rollout)),
        (f"scoring/{other}", verdict(rollout)),
        (f"rollout/{rollout}", verdict(rollout)),
        (f"rollout/{other}", verdict(rollout)),
    )
    assert [item.stream for item in unapplied] == [f"rollout/{other}"]


def test_a_groups_source_is_of_the_streams_own_kind() -> None:
    baseline = ids.baseline_id(TRAINING, 0)
    created = EvaluationCreated(
        kind="baseline", training_id=TRAINING, generation=0, step=0, model_path=None, total_tasks=1
    )

    def group(kind: SourceType) -> GroupCreated:
        return GroupCreated(
            group_id=ids.group_id(baseline, 0),
            source_type=kind,
            source_id=baseline,
            group_num=0,
            batch=0,
            num_rollouts=1,
        )

    subject = f"evaluation/{baseline}"
    assert take((subject, created), (subject, group("baseline"))) == []
    wrong: tuple[SourceType, ...] = ("eval", "step")
    for kind in wrong:
        assert [item.kind for item in take((subject, created), (subject, group(kind)))] == [
            "invalid"
        ]
    assert [item.kind for item in take((subject, group("baseline")))] == ["invalid"]


def test_an_event_of_another_training_than_its_streams_is_parked() -> None:
    training = f"training/{TRAINING}"
    assert take((training, stated()), training=TRAINING) == []
    (unapplied,) = take((training, stated()), training=ids.training_id("b"))
    assert "belongs to the training" in unapplied.reason


def test_one_stream_has_one_spelling() -> None:
    path = GOLDEN_EVENTS / "cua.training.created.v1.json"
    event = json.loads(path.read_bytes())
    owner = event["subject"].partition("/")[2]
    for spelled in (owner.upper(), f"{{{owner}}}", f"urn:uuid:{owner}", owner.replace("-", "")):
        subject = f"training/{spelled}"
        value = json.dumps(event | {"subject": subject}).encode()
        parsed = parse_record(LogRecord("t", 0, 0, subject, value, BEGAN))
        assert (parsed.stream, parsed.envelope) == (lone_stream("t", 0, value), None)
        under_own_key = parse_record(LogRecord("t", 0, 0, event["subject"], value, BEGAN))
        assert (under_own_key.stream, under_own_key.envelope) == (event["subject"], None)

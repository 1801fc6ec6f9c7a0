"""An evaluation that was forged under a step's id: the group that comes second is parked."""

import json
from uuid import UUID

import pytest

from consumers.projection.loop import ProjectionLoop
from consumers.rebuild.verify import verify
from schemas import ids
from schemas.base import Payload
from schemas.evaluation import EvaluationCreated, EvaluationStarted
from schemas.group import GroupCreated
from schemas.wire import encode
from tests.reference_fold.histories import LoggedEvent, Shape, history
from tests.reference_fold.writers import BEGAN
from tests.support.logs import memory_log
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.postgres import one

TRAINING = history("rightful", 1, Shape(steps=1, groups=1, group_size=1, turns=1))


def forged(step: UUID) -> list[LoggedEvent]:
    """An evaluation with one group, in the stream of this id."""
    facts: list[Payload] = [
        EvaluationCreated(
            kind="manual",
            training_id=None,
            generation=None,
            step=None,
            model_path=None,
            total_tasks=1,
        ),
        EvaluationStarted(kind="manual", started_at=BEGAN),
        GroupCreated(
            group_id=ids.group_id(step, 0),
            source_type="eval",
            source_id=step,
            group_num=0,
            batch=0,
            num_rollouts=99,
        ),
    ]
    stream = f"evaluation/{step}"
    return [
        LoggedEvent(
            stream,
            encode(
                fact,
                id=ids.uuid7(BEGAN),
                source="//stranger/1",
                time=BEGAN,
                subject=stream,
                epoch=1,
                sequence=number,
                training_id=None,
            ),
        )
        for number, fact in enumerate(facts, start=1)
    ]


@pytest.mark.services
@pytest.mark.parametrize("batch_records", [1, 400])
@pytest.mark.parametrize("is_forged_first", [True, False])
def test_the_group_that_comes_second_is_parked_and_the_projector_goes_on(
    migrated_url: str, batch_records: int, *, is_forged_first: bool
) -> None:
    (step,) = {
        UUID(event["data"]["step_id"])
        for event in (json.loads(item.value) for item in TRAINING)
        if event["type"] == "cua.step.created"
    }
    strangers = forged(step)
    events = [*strangers, *TRAINING] if is_forged_first else [*TRAINING, *strangers]
    # One partition: the records are read in this order.
    log = memory_log(events, MemoryLog(num_partitions=1))
    ProjectionLoop(MemoryReader(log), migrated_url, batch_records=batch_records).run_once()

    second = f"training/{ids.training_id('rightful')}" if is_forged_first else strangers[0].subject
    parked = "SELECT {} FROM cua.unapplied_record WHERE kind <> 'behind'"
    assert one(migrated_url, parked.format("string_agg(type || ' ' || stream, ',')")) == (
        f"cua.group.created {second}"
    )
    reason = one(migrated_url, parked.format("min(reason)"))
    assert reason == f"group {ids.group_id(step, 0)} is created a second time"
    assert verify(MemoryReader(log), migrated_url).equal

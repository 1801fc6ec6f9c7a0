"""What an evaluation has created is in its stream's memory."""

import pytest

from consumers.fold.fold import Fold
from consumers.fold.parse import parse_record
from consumers.fold.stream import Stream, new_stream, stored_stream
from consumers.fold.unapplied import Unapplied
from consumers.log.reader import LogRecord
from schemas import ids
from schemas.base import Payload
from schemas.evaluation import EvaluationCreated, EvaluationStarted, EvaluationSuperseded
from schemas.group import GroupCreated, GroupDropped, GroupFailed, GroupStarted
from schemas.wire import encode
from tests.support.memory_log import BEGAN

STEP = ids.step_id(ids.training_id("a"), 0, 1)
GROUP = ids.group_id(STEP, 0)
SUBJECT = f"evaluation/{STEP}"
MADE = GroupCreated(
    group_id=GROUP, source_type="eval", source_id=STEP, group_num=0, batch=0, num_rollouts=1
)
ENDED = GroupFailed(group_id=GROUP, completed_rollouts=0, error_message="", ended_at=BEGAN)
BEGUN = EvaluationStarted(kind="manual", started_at=BEGAN)
BEFORE: list[Payload] = [
    EvaluationCreated(
        kind="manual", training_id=None, generation=None, step=None, model_path=None, total_tasks=1
    ),
    *(MADE, ENDED),
    *(BEGUN, BEGUN, BEGUN),
]


def take_singly(facts: list[Payload]) -> list[Unapplied]:
    """What is not applied when each event is a batch, after which the tables alone are known."""
    stream, unapplied = new_stream(SUBJECT), list[Unapplied]()
    for number, fact in enumerate(facts, start=1):
        streams: dict[str, Stream] = {SUBJECT: stream}
        fold = Fold(streams, log_id="log")
        value = encode(
            fact,
            id=ids.uuid7(BEGAN),
            source="//a",
            time=BEGAN,
            subject=SUBJECT,
            epoch=1,
            sequence=number,
            training_id=None,
        )
        fold.take_all([parse_record(LogRecord("t", 0, number, SUBJECT, value, BEGAN))])
        unapplied += fold.batch.unapplied.values()
        stream = stored_stream(stream.row(), ())
    return unapplied


@pytest.mark.parametrize(
    "said",
    [
        ENDED,
        GroupDropped(group_id=GROUP, reason="stale"),
        EvaluationSuperseded(kind="manual", group_ids=(GROUP,)),
    ],
)
def test_its_group_is_its_own_long_after_it_has_ended(said: Payload) -> None:
    assert take_singly([*BEFORE, said]) == []


@pytest.mark.parametrize("said", [MADE, GroupStarted(group_id=GROUP, started_at=BEGAN)])
def test_a_group_that_has_ended_neither_begins_nor_is_made_again(
    said: Payload,
) -> None:
    assert [item.kind for item in take_singly([*BEFORE, said])] == ["transition"]

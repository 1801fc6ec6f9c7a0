"""What a reader does with each record of a stream."""

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from schemas.event import Envelope, StreamPoint
from schemas.streams import RecordOrder, StreamPosition
from tests.schemas.test_wire import EVENT_ID, NOW, SUBJECT


def record(
    epoch: int, sequence: int, source: str = "a", continues: StreamPoint | None = None
) -> Envelope:
    return Envelope(EVENT_ID, source, "t", 1, NOW, SUBJECT, epoch, sequence, None, continues, {})


def read(position: StreamPosition, *records: Envelope) -> list[str]:
    verdicts = []
    for one in records:
        verdict = position.classify(one)
        if verdict is RecordOrder.NEXT:
            position.advance(one)
        elif verdict is RecordOrder.FENCED:
            position.refuse(one)
        verdicts.append(verdict.value)
    return verdicts


def test_records_in_order_are_applied_and_repetitions_ignored() -> None:
    verdicts = read(
        StreamPosition(), record(1, 1), record(1, 2), record(1, 1), record(1, 2), record(1, 3)
    )
    assert verdicts == ["next", "next", "duplicate", "duplicate", "next"]


def test_a_record_that_skips_waits() -> None:
    assert read(StreamPosition(), record(1, 1), record(1, 3), record(1, 2), record(1, 3)) == [
        "next",
        "gap",
        "next",
        "next",
    ]


def test_a_second_writer_of_the_same_epoch_is_fenced() -> None:
    assert read(
        StreamPosition(), record(1, 1), record(1, 1, "b"), record(1, 2, "b"), record(1, 2)
    ) == ["next", "fenced", "fenced", "next"]


def test_a_new_epoch_continues_exactly_where_the_old_one_ended() -> None:
    claim = record(2, 1, "b", StreamPoint(1, 2))
    assert read(StreamPosition(), record(1, 1), claim, record(1, 2), claim, record(2, 2, "b")) == [
        "next",
        "gap",
        "next",
        "next",
        "next",
    ]


def test_a_claim_that_missed_a_record_is_refused_whole() -> None:
    position = StreamPosition()
    stale = record(2, 1, "b", StreamPoint(1, 1))
    assert read(position, record(1, 1), record(1, 2), stale, record(2, 2, "b")) == [
        "next",
        "next",
        "fenced",
        "fenced",
    ]
    assert read(
        position, record(2, 1, "c", StreamPoint(1, 2)), record(2, 2, "b"), record(2, 2, "c")
    ) == ["next", "fenced", "next"]


def test_only_the_first_claim_of_an_epoch_counts() -> None:
    position = StreamPosition()
    point = StreamPoint(1, 1)
    verdicts = read(
        position,
        record(1, 1),
        record(2, 1, "b", point),
        record(2, 1, "c", point),
        record(2, 2, "c"),
        record(2, 2, "b"),
    )
    assert verdicts == ["next", "next", "fenced", "fenced", "next"]


def test_what_a_replaced_writer_still_says_is_fenced_and_what_it_said_before_is_a_repetition() -> (
    None
):
    position = StreamPosition()
    assert read(
        position, record(1, 1), record(2, 1, "b", StreamPoint(1, 1)), record(1, 2), record(1, 1)
    ) == [
        "next",
        "next",
        "fenced",
        "duplicate",
    ]


@given(st.integers(1, 4), st.integers(1, 6), st.randoms(use_true_random=False))
def test_any_redelivery_applies_every_record_once_and_in_order(
    epochs: int, length: int, rng: random.Random
) -> None:
    history = [
        record(
            epoch,
            sequence,
            f"writer-{epoch}",
            StreamPoint(epoch - 1, length) if epoch > 1 and sequence == 1 else None,
        )
        for epoch in range(1, epochs + 1)
        for sequence in range(1, length + 1)
    ]
    delivered: list[Envelope] = []
    for index in range(len(history)):
        delivered.append(history[index])
        again = rng.randint(0, index)
        delivered += [replace(one) for one in history[rng.randint(0, again) : again + 1]]
    position, applied = StreamPosition(), []
    for one in delivered:
        verdict = position.classify(one)
        assert verdict in {RecordOrder.NEXT, RecordOrder.DUPLICATE}
        if verdict is RecordOrder.NEXT:
            position.advance(one)
            applied.append(one.point)
    assert applied == [one.point for one in history]

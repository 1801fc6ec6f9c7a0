"""What a reader does with each record of a stream."""

import random

from hypothesis import given
from hypothesis import strategies as st

from schemas.event import Envelope, StreamPoint
from schemas.streams import Epoch, RecordOrder, StreamPosition
from schemas.waiting import WaitingRecords
from tests.schemas.test_wire import EVENT_ID, NOW, SUBJECT


def record(
    epoch: int, sequence: int, source: str = "a", continues: StreamPoint | None = None
) -> Envelope:
    return Envelope(
        *(str(EVENT_ID), source, "t", 1, NOW, SUBJECT),
        *(epoch, sequence, None, continues, {}),
    )


def read(position: StreamPosition, *records: Envelope) -> list[str]:
    verdicts = []
    for item in records:
        verdict = position.classify(item)
        if verdict is RecordOrder.NEXT:
            position.advance(item)
        elif verdict is RecordOrder.FENCED:
            position.refuse(item)
        verdicts.append(verdict.value)
    return verdicts


def test_records_in_order_are_applied_and_duplicates_ignored() -> None:
    verdicts = read(
        StreamPosition(), record(1, 1), record(1, 2), record(1, 1), record(1, 2), record(1, 3)
    )
    assert verdicts == ["next", "next", "duplicate", "duplicate", "next"]


def test_a_record_beyond_a_gap_waits() -> None:
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


def test_a_replaced_writers_later_records_are_fenced_and_its_earlier_ones_duplicates() -> None:
    position = StreamPosition()
    assert read(
        position, record(1, 1), record(2, 1, "b", StreamPoint(1, 1)), record(1, 2), record(1, 1)
    ) == [
        "next",
        "next",
        "fenced",
        "duplicate",
    ]


def history_of(epochs: int, length: int) -> list[Envelope]:
    """Every record of a stream, each epoch by its own writer."""
    return [
        record(
            epoch,
            sequence,
            f"writer-{epoch}",
            StreamPoint(epoch - 1, length) if epoch > 1 and sequence == 1 else None,
        )
        for epoch in range(1, epochs + 1)
        for sequence in range(1, length + 1)
    ]


@given(st.integers(1, 4), st.integers(1, 6), st.randoms(use_true_random=False))
def test_any_redelivery_applies_every_record_once_and_in_order(
    epochs: int, length: int, rng: random.Random
) -> None:
    history = history_of(epochs, length)
    delivered: list[Envelope] = []
    for index in range(len(history)):
        delivered.append(history[index])
        again = rng.randint(0, index)
        delivered += [event._replace() for event in history[rng.randint(0, again) : again + 1]]
    position, applied = StreamPosition(), []
    for item in delivered:
        verdict = position.classify(item)
        assert verdict in {RecordOrder.NEXT, RecordOrder.DUPLICATE}
        if verdict is RecordOrder.NEXT:
            position.advance(item)
            applied.append(item.point)
    assert applied == [event.point for event in history]


def wait(position: StreamPosition, records: list[Envelope]) -> WaitingRecords[Envelope]:
    waiting: WaitingRecords[Envelope] = WaitingRecords()
    for item in records:
        waiting.add(item, item, position)
    return waiting


def apply_released(
    position: StreamPosition, waiting: WaitingRecords[Envelope]
) -> list[StreamPoint]:
    applied = []
    while (one := waiting.pop_released(position)) is not None:
        if position.classify(one) is RecordOrder.NEXT:
            position.advance(one)
            applied.append(one.point)
    return applied


@given(st.integers(1, 4), st.integers(1, 5), st.data())
def test_for_any_order_of_waiting_records_all_are_released_in_stream_order(
    epochs: int, length: int, data: st.DataObject
) -> None:
    history = history_of(epochs, length)
    position = StreamPosition()
    waiting = wait(position, data.draw(st.permutations(history)))
    assert apply_released(position, waiting) == [event.point for event in history]
    assert not waiting


@given(st.integers(1, 4), st.integers(1, 5), st.data())
def test_for_any_order_a_missing_record_holds_back_exactly_what_follows_it(
    epochs: int, length: int, data: st.DataObject
) -> None:
    history = history_of(epochs, length)
    missing = data.draw(st.integers(0, len(history) - 1))
    position = StreamPosition()
    left = data.draw(st.permutations(history[:missing] + history[missing + 1 :]))
    waiting = wait(position, left)
    assert apply_released(position, waiting) == [event.point for event in history[:missing]]
    assert {item.point for item in waiting} == {event.point for event in history[missing + 1 :]}
    assert {position.classify(item) for item in waiting} <= {RecordOrder.GAP}


@given(st.integers(1, 4), st.integers(1, 5), st.data())
def test_for_any_order_and_any_missing_records_skipping_gaps_applies_all_others_in_order(
    epochs: int, length: int, data: st.DataObject
) -> None:
    history = history_of(epochs, length)
    is_kept = data.draw(st.lists(st.booleans(), min_size=len(history), max_size=len(history)))
    kept = [one for one, keep in zip(history, is_kept, strict=True) if keep]
    position = StreamPosition()
    waiting = wait(position, data.draw(st.permutations(kept)))
    applied = apply_released(position, waiting)
    while waiting:
        first = min(waiting, key=lambda item: item.point)
        assert position.classify(first) is RecordOrder.GAP
        position.skip_gap(first)
        assert position.classify(first) is RecordOrder.NEXT
        applied += apply_released(position, waiting)
    assert applied == [item.point for item in kept]


def test_what_a_skipped_gap_gave_up_is_not_applied_when_it_arrives_late() -> None:
    position = StreamPosition()
    position.advance(record(1, 1))
    position.skip_gap(record(1, 4))
    assert position.point == StreamPoint(1, 3)
    assert read(position, record(1, 4), record(1, 2), record(1, 3)) == [
        "next",
        "duplicate",
        "duplicate",
    ]


def test_a_claim_beyond_a_gap_is_applied_after_skipping_it_and_its_predecessor_stays_fenced() -> (
    None
):
    position = StreamPosition()
    position.advance(record(1, 1))
    claim = record(3, 1, "c", StreamPoint(2, 5))
    assert position.classify(claim) is RecordOrder.GAP
    position.skip_gap(claim)
    assert position.point == StreamPoint(2, 5)
    assert read(position, claim, record(2, 6, "b"), record(1, 2)) == ["next", "fenced", "fenced"]


def test_nothing_is_released_where_all_records_wait() -> None:
    position = StreamPosition()
    waiting = wait(position, [record(1, 3), record(1, 2)])
    assert waiting.pop_released(position) is None
    assert len(waiting) == 2
    assert WaitingRecords[Envelope]().pop_released(position) is None


def test_a_waiting_record_is_released_when_it_turns_out_to_be_fenced() -> None:
    position = StreamPosition()
    stranger = record(1, 3, "b")
    waiting = wait(position, [stranger])
    assert waiting.pop_released(position) is None
    position.advance(record(1, 1))
    assert waiting.pop_released(position) is stranger


class CountingPosition(StreamPosition):
    """Counts how often a record is looked at."""

    num_looks = 0

    def classify(self, envelope: Envelope) -> RecordOrder:
        self.num_looks += 1
        return super().classify(envelope)


def test_each_waiting_record_is_looked_at_a_fixed_number_of_times() -> None:
    position = CountingPosition()
    records = [record(1, sequence) for sequence in range(2, 8_001)]
    waiting = wait(position, records)
    for _ in range(1_000):
        assert waiting.pop_released(position) is None
    position.advance(record(1, 1))
    assert len(apply_released(position, waiting)) == len(records)
    assert position.num_looks <= 2 * len(records)


def first_released(position: StreamPosition, waiting: list[Envelope]) -> Envelope | None:
    """The rule in one line: the first in stream order that is no longer beyond a gap."""
    ordered = sorted(waiting, key=lambda item: item.point)
    return next((item for item in ordered if position.classify(item) is not RecordOrder.GAP), None)


ENVELOPES = st.builds(
    record,
    st.integers(1, 4),
    st.integers(1, 5),
    st.sampled_from("abc"),
    st.none() | st.builds(StreamPoint, st.integers(0, 4), st.integers(0, 5)),
)
"""Of any writer, with right, wrong and missing claims."""


@given(st.lists(ENVELOPES, max_size=40), st.data())
def test_waiting_records_are_released_as_by_the_plain_rule(  # noqa: C901  # both rules side by side
    records: list[Envelope], data: st.DataObject
) -> None:
    plain_position, position = StreamPosition(), StreamPosition()
    plain: list[Envelope] = []
    waiting: WaitingRecords[Envelope] = WaitingRecords()

    def read_plainly(one: Envelope) -> str:
        verdict = plain_position.classify(one)
        if verdict is RecordOrder.NEXT:
            plain_position.advance(one)
        elif verdict is RecordOrder.GAP:
            plain.append(one)
        elif verdict is RecordOrder.FENCED:
            plain_position.refuse(one)
        return verdict.value

    def read(one: Envelope) -> str:
        verdict = position.classify(one)
        if verdict is RecordOrder.NEXT:
            position.advance(one)
        elif verdict is RecordOrder.GAP:
            waiting.add(one, one, position)
        elif verdict is RecordOrder.FENCED and position.refuse(one):
            waiting.fence(one.epoch, one.source)
        return verdict.value

    def expect_same_releases() -> None:
        expected, found = list[str](), list[str]()
        while (released := first_released(plain_position, plain)) is not None:
            plain.remove(released)
            expected += [str(released.point), released.source, read_plainly(released)]
        while (next_one := waiting.pop_released(position)) is not None:
            found += [str(next_one.point), next_one.source, read(next_one)]
        assert found == expected
        assert list(waiting) == plain
        assert position == plain_position

    for one in records:
        assert read(one) == read_plainly(one)
        expect_same_releases()
        if data.draw(st.integers(0, 9)) == 0:
            # A restart: what waits is loaded again.
            waiting = wait(position, list(waiting))
        if plain and data.draw(st.integers(0, 9)) == 0:
            # An operator gives up the gap before the first waiting record.
            first = min(plain, key=lambda one: one.point)
            plain_position.skip_gap(first)
            position.skip_gap(first)
            expect_same_releases()
            assert first not in plain


def test_the_next_epoch_continues_the_last_record_read() -> None:
    position = StreamPosition()
    assert position.next_epoch() == Epoch(1, None)
    position.advance(record(1, 1))
    position.advance(record(1, 2))
    assert position.next_epoch() == Epoch(2, StreamPoint(1, 2))


@given(st.integers(0, 4), st.integers(1, 5))
def test_a_claim_by_the_next_epoch_is_next_wherever_the_stream_ends(
    epochs: int, length: int
) -> None:
    position = StreamPosition()
    for item in history_of(epochs, length):
        position.advance(item)
    number, continues = position.next_epoch()
    assert position.classify(record(number, 1, "new", continues)) is RecordOrder.NEXT

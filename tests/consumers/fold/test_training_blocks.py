"""The index of trainings: every record that was read is in it, whatever became of it."""

import re
from datetime import UTC, datetime
from random import Random
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from consumers.fold.parse import ParsedRecord, parse_record
from consumers.fold.training_blocks import ANY, TrainingBlocks
from consumers.log.reader import LogRecord, TopicPartition
from tests.support.logs import logged_events

AT = TopicPartition("cua.training", 4)
EVENTS = logged_events("a", "b", "c")
UUIDS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def record(offset: int, key: str | None, value: bytes) -> ParsedRecord:
    return parse_record(LogRecord(*AT, offset, key, value, datetime(2026, 1, 1, tzinfo=UTC)))


def test_a_block_names_the_trainings_of_its_records_and_128_offsets_are_one() -> None:
    a = next(event for event in EVENTS if event.subject.startswith("training/"))
    b = next(
        event
        for event in EVENTS
        if event.subject.startswith("training/") and event.subject != a.subject
    )
    first, second = a.subject.partition("/")[2], b.subject.partition("/")[2]
    blocks = TrainingBlocks()
    records = [record(127, a.subject, a.value), record(128, b.subject, b.value)]
    assert blocks.take(records, {AT: 127}, {AT: 129}) == {
        (*AT, 0): {first},
        (*AT, 1): {second},
    }


def test_offsets_without_a_record_have_an_entry_too() -> None:
    assert TrainingBlocks().take([], {AT: 100}, {AT: 385}) == {
        (*AT, number): set() for number in range(4)
    }


def test_what_is_no_event_counts_for_every_id_in_it() -> None:
    ids = [str(UUID(int=number << 100 | number)) for number in range(1, 4)]
    overlapping = f"{ids[0]}-{ids[1]}{ids[2]}".encode()
    found = TrainingBlocks().take([record(0, "training/x", overlapping)], {AT: 0}, {AT: 1})
    assert found[*AT, 0] >= set(ids)
    many = b",".join(str(UUID(int=number)).encode() for number in range(1_001))
    assert TrainingBlocks().take([record(0, None, many)], {AT: 0}, {AT: 1}) == {(*AT, 0): {ANY}}


def test_an_event_under_a_foreign_key_counts_for_the_ids_in_it() -> None:
    event = next(event for event in EVENTS if event.subject.startswith("training/"))
    foreign = record(7, f"training/{UUID(int=5)}", event.value)
    assert foreign.envelope is None
    found = TrainingBlocks().take([foreign], {AT: 7}, {AT: 8})
    assert event.subject.partition("/")[2] in found[*AT, 0]


@given(st.data())
def test_whatever_the_batches_the_union_is_what_the_records_contain(data: st.DataObject) -> None:
    """Against a search of every value for ids: nothing that a trainer would look for is missing."""
    seed = data.draw(st.integers(0, 1_000))
    random = Random(seed)
    offset, records = 0, []
    for choice in random.choices(EVENTS, k=40):
        offset += random.choice([1, 1, 1, 40, 300])
        garbled = choice.value[: random.randrange(len(choice.value))]
        value = garbled if random.random() < 0.2 else choice.value
        records.append(record(offset, choice.subject, value))
    stored: dict[tuple[str, int, int], set[str]] = {}
    blocks, base = TrainingBlocks(), 0
    while records and base <= offset:
        batch = [records.pop(0) for _ in range(min(len(records), random.randint(1, 9)))]
        end = batch[-1].record.offset + 1
        for place, named in blocks.take(batch, {AT: base}, {AT: end}).items():
            stored.setdefault(place, set()).update(named)
        if random.random() < 0.3:
            blocks.clear()  # another process goes on
        for parsed in batch:
            trainings = {
                name
                for name in UUIDS.findall(parsed.record.value.decode(errors="replace"))
                if f'"trainingid":"{name}"'.encode() in parsed.record.value
            }
            assert trainings <= stored[*AT, parsed.record.offset // 128]
        base = end
    assert sorted(block for _, _, block in stored) == list(range((base - 1) // 128 + 1))

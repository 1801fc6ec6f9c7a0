"""What the fold is made of, without a database."""

import json
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumers.fold.fold import Fold
from consumers.fold.parse import parse_record
from consumers.fold.projectors.registry import HOMES, PROJECTORS
from consumers.fold.rows import Insert, Row, Rows, UnappliableError, Update, Upsert, row_id
from consumers.fold.stream import Stream, new_stream
from consumers.fold.transition import entity_key
from consumers.log.reader import LogRecord
from consumers.projection.copying import copy_text, json_text
from schemas.catalogue import PAYLOADS, TOPICS, entity_of, stream_owner
from schemas.decision import DECISIONS
from schemas.ids import natural_id
from schemas.streams import RecordOrder, StreamPosition
from schemas.wire import decode, read_envelope
from tests.support.logs import logged_events
from tests.support.paths import GOLDEN_EVENTS

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def record(value: bytes, key: str | None = None, offset: int = 0) -> LogRecord:
    return LogRecord("t", 0, offset, key, value, NOW)


def test_every_event_has_a_kind_of_stream_and_all_but_decisions_have_a_projector() -> None:
    assert set(HOMES) == set(PAYLOADS)
    assert set(PROJECTORS) == set(PAYLOADS) - set(DECISIONS)
    assert set().union(*HOMES.values()) == set(TOPICS)


def test_every_event_ever_written_has_the_entity_that_the_catalogue_names() -> None:
    for path in GOLDEN_EVENTS.glob("*.json"):
        envelope, payload = decode(path.read_bytes())
        expected = entity_of(envelope.subject, payload)
        assert entity_key(str(stream_owner(envelope.subject)), payload) == (
            None if expected is None else (expected[0], str(expected[1]))
        ), path.stem


def test_a_partitions_position_and_time_are_those_of_its_highest_offset() -> None:
    """A replay takes records of streams in several partitions late, and after later ones."""
    times = [NOW + timedelta(seconds=number) for number in range(4)]
    late = [parse_record(LogRecord("t", 0, item, None, b"", times[item])) for item in (3, 1)]

    fold = Fold({}, log_id="log")
    both = fold.take_all(late).partitions["t", 0]
    fold.stay_at(("t", 0), 2)
    assert (both.next_offset, both.appended_at) == (4, times[3])

    fold = Fold({}, log_id="log")
    alone = fold.take_all(late[1:]).partitions["t", 0]
    fold.stay_at(("t", 0), 4)
    assert (alone.next_offset, alone.appended_at) == (4, None)


@given(key=st.uuids(), number=st.integers(0, 10**9))
def test_row_ids_are_the_natural_ids(key: UUID, number: int) -> None:
    assert row_id("turn", str(key), str(number)) == str(natural_id("turn", key, number))
    assert row_id("action", str(key), str(number)) == str(natural_id("action", key, number))
    assert row_id("status_history", "step", str(key), "1", str(number)) == str(
        natural_id("status_history", "step", key, 1, number)
    )


def test_a_change_goes_into_the_insert_of_the_same_batch() -> None:
    rows = Rows()

    rows.add([Insert("step", {"id": "1", "loss": None})])
    rows.add([Update("step", "1", {"loss": 2.0}), Update("step", "2", {"loss": 3.0})])
    rows.add([Update("step", "2", {"batch": 4})])

    assert rows.inserts == {"step": {"1": {"id": "1", "loss": 2.0}}}
    assert rows.changes == {"step": {"2": {"loss": 3.0, "batch": 4}}}


def test_a_change_that_comes_before_its_row_changes_nothing() -> None:
    rows = Rows()

    rows.add([Update("step", "1", {"loss": 2.0})])
    rows.add([Insert("step", {"id": "1", "loss": None})])

    assert rows.inserts == {"step": {"1": {"id": "1", "loss": None}}}
    assert rows.changes == {"step": {}}


def test_an_event_that_makes_a_row_twice_changes_nothing() -> None:
    rows = Rows()
    rows.add([Insert("step", {"id": "1"})])

    with pytest.raises(UnappliableError, match="step 1 is created a second time"):
        rows.add([Insert("group", {"id": "5"}), Insert("step", {"id": "1"})])
    with pytest.raises(UnappliableError):
        rows.add([Insert("group", {"id": "6"}), Insert("group", {"id": "6"})])

    assert rows.inserts == {"step": {"1": {"id": "1"}}}


def test_a_statement_keeps_its_earliest_and_its_latest_time_in_any_order() -> None:
    times = [
        "2026-01-02T00:00:00.000000+00:00",
        "2026-01-01T00:00:00.000000+00:00",
        "2026-01-03T00:00:00.000000+00:00",
    ]
    rows = Rows()

    for time in times:
        rows.add([Upsert("task", {"id": "1", "created_at": time, "updated_at": time})])

    assert rows.upserts["task"]["1"] == {"id": "1", "created_at": times[1], "updated_at": times[2]}


def test_copy_escapes_what_copy_reads_otherwise_and_a_nul_becomes_the_replacement_character() -> (
    None
):
    row: Row = {
        "id": "1",
        "text_content": "a\tb\\c\nd\re\x00f",
        "model_input_json": {"x\x00": ["\\", float("nan")]},
    }

    fields = copy_text("obs", [row]).rstrip("\n").split("\t")

    assert fields == [
        "1",
        "\\N",
        "\\N",
        "\\N",
        "a\\tb\\\\c\\nd\\re\ufffdf",
        '{"x\ufffd":["\\\\\\\\","NaN"]}',
        "\\N",
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_any_document_becomes_json_without_a_nul(document: object) -> None:
    text = json_text(document)

    assert "\\u0000" not in text.replace("\\\\", "")
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_a_key_that_is_not_the_subject_parks_under_the_key() -> None:
    one = logged_events("a")[0]
    other = "rollout/00000000-0000-0000-0000-000000000001"

    parsed = parse_record(record(one.value, other))

    assert (parsed.stream, parsed.envelope) == (other, None)
    assert parsed.problem == f"key '{other}' is not the event's subject '{one.subject}'"


def test_an_event_in_the_wrong_kind_of_stream_is_parked() -> None:
    created = next(
        logged_event
        for logged_event in logged_events("a")
        if b'"cua.training.created"' in logged_event.value
    )
    subject = "rollout/00000000-0000-0000-0000-000000000001"
    moved = created.value.replace(created.subject.encode(), subject.encode())

    fold = Fold({}, log_id="log")
    batch = fold.take_all([parse_record(record(moved, subject))])

    (unapplied,) = batch.unapplied.values()
    assert (unapplied.kind, batch.rows.inserts, batch.rows.upserts) == ("invalid", {}, {})
    assert unapplied.reason == (
        f"cua.training.created in the stream {subject}; it belongs in a stream of training"
    )


@pytest.mark.parametrize("size", [1, 100])
def test_an_integer_that_its_column_cannot_store_is_parked_however_records_are_batched(
    size: int,
) -> None:
    events = [
        logged_event
        for logged_event in logged_events("a")
        if logged_event.subject.startswith("training/")
    ]
    at = next(at for at, one in enumerate(events) if b'"cua.training.started"' in one.value)
    event = json.loads(events[at].value)
    event["data"]["current_step"] = 2**31
    values = [event.value for event in events]
    values[at] = json.dumps(event).encode()
    parsed = [parse_record(record(value, offset=at)) for at, value in enumerate(values)]
    streams: dict[str, Stream] = {}
    unapplied = []
    for start in range(0, len(parsed), size):
        batch = Fold(streams, log_id="log").take_all(parsed[start : start + size])
        unapplied += [item.kind for item in batch.unapplied.values()]
    assert unapplied == ["invalid"] + ["behind"] * (len(values) - at - 1)


def test_after_a_skipped_gap_the_first_record_behind_it_is_next() -> None:
    values = [
        logged_event.value
        for logged_event in logged_events("a")
        if logged_event.subject.startswith("training/")
    ]
    envelope = read_envelope(values[5])
    position = StreamPosition(1, 2, envelope.source)

    position.skip_gap(envelope)

    assert position.classify(envelope) is RecordOrder.NEXT
    assert position.point == (1, 5)


def test_a_stream_is_named_by_a_kind_and_a_canonical_uuid() -> None:
    assert new_stream("rollout/00000000-0000-0000-0000-00000000000a") == Stream(
        "rollout/00000000-0000-0000-0000-00000000000a", "00000000-0000-0000-0000-00000000000a"
    )
    for name in (
        "rollout/00000000-0000-0000-0000-00000000000A",
        "dream/00000000-0000-0000-0000-00000000000a",
        "rollout/",
        "rollout",
    ):
        with pytest.raises(
            ValueError, match=r"unknown kind of stream|not a lower-case uuid|badly formed"
        ):
            new_stream(name)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 2, 1), (0, 2, 3, 1)])
def test_what_a_parked_record_holds_back_depends_on_no_order_of_arrival(
    order: tuple[int, ...],
) -> None:
    """The second of four records cannot be applied; the others come in any order."""
    events = logged_events("a")
    values = [event.value for event in events if event.subject == events[0].subject][:4]
    values[1] = json.dumps(json.loads(values[1]) | {"type": "cua.training.dreamt"}).encode()
    fold = Fold({}, log_id="")
    fold.take_all(
        parse_record(record(values[number], events[0].subject, offset))
        for offset, number in enumerate(order)
    )
    unapplied = [(item.state, item.kind) for item in fold.batch.unapplied.values()]
    assert sorted(unapplied) == [("parked", "behind")] * 2 + [("parked", "unknown_schema")]
    (stream,) = fold.batch.streams.values()
    assert (len(stream.waiting), stream.row()["num_waiting"]) == (0, 0)

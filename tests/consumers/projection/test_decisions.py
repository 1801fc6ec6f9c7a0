"""Operators' decisions are events: read in order, by projectors and rebuilds alike."""

import json
from uuid import UUID

import pytest

from consumers.database.connection import connected
from consumers.errors import NotFoundError, UsageError
from consumers.projection.decisions import Decision
from consumers.projection.loop import ProjectionLoop
from consumers.projection.operators import Operator
from consumers.rebuild.verify import verify
from schemas.catalogue import topic_of
from schemas.decision import (
    GapDropped,
    RecordDropped,
    lone_stream,
    value_hash,
)
from tests.consumers.projection.test_retry import (
    CALM,
    connection,
    expect,
    garbled,
    index_of,
    operator,
    project,
    unknown,
)
from tests.reference_fold.comparison import database_tables, differences, plain_tables
from tests.reference_fold.histories import LoggedEvent
from tests.reference_fold.reference import fold
from tests.support.decisions import append, drop_gap, drop_record, encoded, undo_rest
from tests.support.logs import logged_events, memory_log
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.unapplied import list_unapplied

__all__ = ["connection", "operator"]

pytestmark = pytest.mark.services


def expect_log(url: str, log: MemoryLog) -> None:
    """The tables are the reference fold of this log."""
    expected = fold((record.key, record.value) for record in log.records)
    assert differences(plain_tables(expected.tables), database_tables(url)) == []


def test_a_record_whose_value_and_key_name_no_stream_is_parked_alone(
    migrated_url: str, operator: Operator
) -> None:
    events = logged_events("a", shape=CALM)
    log = MemoryLog()
    log.append(None, b"garbage", "cua.rollouts", 0)
    memory_log(events, log)

    project(log, migrated_url)

    (unapplied,) = list_unapplied(operator)
    assert (unapplied.id, unapplied.kind) == ("cua.rollouts/0@0", "unreadable")
    assert unapplied.stream == lone_stream("rollouts", 0, b"garbage")
    assert operator.show("cua.rollouts/0@0")[1] == b"garbage"
    expect(migrated_url, events)
    drop_record(log, migrated_url, "cua.rollouts/0@0")
    project(log, migrated_url)
    assert list_unapplied(operator) == []
    assert verify(MemoryReader(log), migrated_url).equal


@pytest.mark.parametrize("spoil", [garbled, unknown])
def test_a_dropped_record_is_passed_over_or_leaves_a_gap_and_a_rebuild_does_the_same(
    migrated_url: str, operator: Operator, spoil: object
) -> None:
    assert callable(spoil)
    events = logged_events("a", shape=CALM)
    index = index_of(events, "cua.training.heartbeat_sent")
    log = memory_log(spoil(events, index))
    project(log, migrated_url)
    (culprit,) = [unapplied for unapplied in list_unapplied(operator) if unapplied.kind != "behind"]

    drop_record(log, migrated_url, culprit.id)
    project(log, migrated_url)

    if spoil is garbled:
        # Nobody knows which place in the stream it had: what follows waits, until that is given up
        # too.
        assert {unapplied.state for unapplied in list_unapplied(operator)} == {"waiting"}
        drop_gap(log, migrated_url, events[index].subject)
        project(log, migrated_url)
    assert list_unapplied(operator) == []
    found = database_tables(migrated_url)
    assert len(found["step"]) == 1
    assert {row["status"] for row in found["training"].values()} == {"completed"}
    assert [row.get("last_heartbeat") for row in found["training"].values()] == [None]
    assert verify(MemoryReader(log), migrated_url).differences == []


def test_the_rest_of_a_stream_can_be_given_up_for_good(
    migrated_url: str, operator: Operator
) -> None:
    events = logged_events("a", shape=CALM)
    index = index_of(events, "cua.rollout.turn_taken", 1)
    log = memory_log(unknown(events, index))
    project(log, migrated_url)

    before = len(list_unapplied(operator))
    drop_record(log, migrated_url, list_unapplied(operator)[0].id, rest=True)
    log.append(events[index].subject, events[index].value, "cua.rollouts")
    project(log, migrated_url)

    unapplied = list_unapplied(operator)
    assert [item.state for item in unapplied] == ["refused"] * (before + 1)
    assert [item.kind for item in unapplied] == ["dropped"] + ["behind"] * before
    with connected(migrated_url, "test") as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT sequence FROM cua.stream_position WHERE stream = %s", (events[index].subject,)
        )
        assert cursor.fetchall() == [(json.loads(events[index].value)["sequence"] - 1,)]
    expect(
        migrated_url,
        [event for event in events[:index] if event.subject == events[index].subject]
        + [event for event in events if event.subject != events[index].subject],
    )
    assert verify(MemoryReader(log), migrated_url).equal


def test_a_gap_is_given_up_where_it_stood_even_when_it_fills_later(
    migrated_url: str, operator: Operator
) -> None:
    events = logged_events("a", shape=CALM)
    first, second = (
        index_of(events, "cua.training.started"),
        index_of(events, "cua.training.heartbeat_sent"),
    )
    assert second == first + 1 or events[first].subject == events[second].subject
    missing = [events[first], events[second]]
    log = memory_log([event for event in events if event not in missing])
    project(log, migrated_url)
    log.append(events[first].subject, events[first].value, "cua.training")
    project(log, migrated_url)
    assert {unapplied.state for unapplied in list_unapplied(operator)} == {"waiting"}

    drop_gap(log, migrated_url, events[second].subject)
    log.append(events[second].subject, events[second].value, "cua.training")
    project(log, migrated_url)

    assert list_unapplied(operator) == []
    assert [
        row.get("last_heartbeat") for row in database_tables(migrated_url)["training"].values()
    ] == [None]
    assert [row["status"] for row in database_tables(migrated_url)["training"].values()] == [
        "completed"
    ]
    assert verify(MemoryReader(log), migrated_url).differences == []


def test_a_gap_that_filled_before_the_decision_was_read_is_not_given_up(
    migrated_url: str, operator: Operator
) -> None:
    events = logged_events("a", shape=CALM)
    index = index_of(events, "cua.training.started")
    log = memory_log(events[:index] + events[index + 1 :])
    project(log, migrated_url)
    late = events[index]
    decision_before = len(log.records)
    drop_gap(log, migrated_url, late.subject)
    decision = log.records.pop()
    assert len(log.records) == decision_before
    log.append(late.subject, late.value, "cua.training")
    log.append(decision.key, decision.value, "cua.training")

    project(log, migrated_url)

    assert list_unapplied(operator) == []
    expect(migrated_url, events)
    assert verify(MemoryReader(log), migrated_url).equal


def test_the_rest_is_taken_up_again_with_what_came_meanwhile(
    migrated_url: str, operator: Operator
) -> None:
    events = logged_events("a", shape=CALM)
    index = index_of(events, "cua.rollout.turn_taken", 1)
    spoilt = unknown(events, index)
    log = memory_log(spoilt[:-5])
    project(log, migrated_url)
    stream = events[index].subject
    unapplied = list_unapplied(operator)
    drop_record(log, migrated_url, unapplied[0].id, rest=True)
    project(log, migrated_url)
    memory_log(spoilt[-5:], log)
    project(log, migrated_url)

    undo_rest(log, migrated_url, stream)
    project(log, migrated_url)

    back = [item for item in list_unapplied(operator) if item.stream == stream]
    assert {item.state for item in back} == {"parked"}
    assert back[0] == unapplied[0]
    assert verify(MemoryReader(log), migrated_url).equal
    drop_record(log, migrated_url, unapplied[0].id)
    project(log, migrated_url)
    assert list_unapplied(operator) == []
    assert verify(MemoryReader(log), migrated_url).equal
    with pytest.raises(NotFoundError, match="is not dropped"):
        undo_rest(log, migrated_url, stream)


@pytest.mark.parametrize("size", [1, 3, 1_000])
def test_decisions_about_one_stream_in_one_batch_follow_each_other(
    migrated_url: str, operator: Operator, size: int
) -> None:
    events = logged_events("a", shape=CALM)
    first = index_of(events, "cua.training.heartbeat_sent")
    second = index_of(events, "cua.step.progressed")
    spoilt = garbled(unknown(events, first), second)
    log = memory_log(spoilt)
    home = events[first].subject
    position = json.loads(events[second].value)["sequence"] - 1
    for payload in (
        RecordDropped(value_sha256=value_hash(spoilt[first].value), made_by="tester"),
        RecordDropped(value_sha256=value_hash(b"{"), made_by="tester"),
        GapDropped(from_epoch=1, from_sequence=position, made_by="tester"),
    ):
        append(log, Decision(home, None, payload))

    ProjectionLoop(MemoryReader(log), migrated_url, batch_records=size).run_once()

    assert list_unapplied(operator) == []
    assert verify(MemoryReader(log), migrated_url).equal
    expect_log(migrated_url, log)


def test_a_decision_names_the_training_of_its_stream_when_its_record_names_none(
    migrated_url: str, operator: Operator
) -> None:
    events = logged_events("a", shape=CALM)
    index = index_of(events, "cua.rollout.turn_taken", 1)
    spoilt = unknown(events, index)
    event = json.loads(spoilt[index].value)
    training = event.pop("trainingid")
    spoilt[index] = LoggedEvent(spoilt[index].subject, json.dumps(event).encode())
    log = memory_log(spoilt)
    project(log, migrated_url)

    decision = drop_record(log, migrated_url, list_unapplied(operator)[0].id)

    assert str(decision.training_id) == training


def test_a_decision_that_this_code_does_not_know_parks_its_stream(
    migrated_url: str, operator: Operator
) -> None:
    events = logged_events("a", shape=CALM)
    log = memory_log(events)
    payload = RecordDropped(value_sha256="0" * 64, made_by="tester")
    stream = events[0].subject
    value = encoded(Decision(stream, None, payload)).replace(b"record_dropped", b"later_dropped")
    log.append(stream, value, topic_of(stream, "cua."))

    project(log, migrated_url)

    (unapplied,) = list_unapplied(operator)
    assert (unapplied.stream, unapplied.kind, unapplied.epoch) == (stream, "unknown_schema", None)
    drop_record(log, migrated_url, unapplied.id)
    project(log, migrated_url)
    assert list_unapplied(operator) == []
    assert verify(MemoryReader(log), migrated_url).equal


def test_what_is_applied_cannot_be_dropped(migrated_url: str, operator: Operator) -> None:
    log = MemoryLog()
    with pytest.raises(NotFoundError, match=r"cua\.training/0@7 is not among the records"):
        drop_record(log, migrated_url, "cua.training/0@7")
    for garbled_id in ("7", "cua.training/\u0663@1", "\udcff/0@1", "a\nb/0@1"):
        with pytest.raises(UsageError, match="topic/partition@offset"):
            drop_record(log, migrated_url, garbled_id)
    with pytest.raises(NotFoundError, match="is not among the records"):
        operator.show("cua.training/0@" + "9" * 200_000)
    for name in ("training/x", "training/\udcff"):
        with pytest.raises(UsageError, match="is not a stream, such as rollout/<uuid>"):
            drop_gap(log, migrated_url, name)
    with pytest.raises(NotFoundError, match="waits for no gap"):
        drop_gap(log, migrated_url, f"rollout/{UUID(int=7)}")
    assert log.records == []


def test_a_record_that_only_waits_behind_a_parked_one_is_not_dropped(
    migrated_url: str, operator: Operator
) -> None:
    events = logged_events("a", shape=CALM)
    log = memory_log(unknown(events, index_of(events, "cua.training.heartbeat_sent")))
    project(log, migrated_url)

    with pytest.raises(UsageError, match="is only behind a parked record"):
        drop_record(log, migrated_url, list_unapplied(operator)[1].id)

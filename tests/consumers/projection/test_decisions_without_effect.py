"""A decision about a record that was applied, or decided before, changes nothing."""

import pytest

from consumers.database.connection import connected
from consumers.errors import NotFoundError
from consumers.projection.decisions import Decision
from consumers.projection.operators import Operator
from consumers.rebuild.rebuild import rebuild
from consumers.rebuild.verify import verify
from schemas.decision import (
    RestDropped,
    value_hash,
)
from tests.consumers.projection.test_decisions import expect_log
from tests.consumers.projection.test_retry import (
    CALM,
    connection,
    expect,
    index_of,
    operator,
    project,
    unknown,
)
from tests.reference_fold.comparison import database_tables
from tests.support.decisions import append, drop_record, undo_rest
from tests.support.logs import logged_events, memory_log
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.postgres import execute, one
from tests.support.unapplied import list_unapplied

__all__ = ["connection", "operator"]

pytestmark = pytest.mark.services


def test_a_decision_twice_or_about_what_is_applied_changes_nothing(
    migrated_url: str, operator: Operator
) -> None:
    events = logged_events("a", shape=CALM)
    index = index_of(events, "cua.training.heartbeat_sent")
    log = memory_log(unknown(events, index))
    project(log, migrated_url)
    drop_record(log, migrated_url, list_unapplied(operator)[0].id)
    again = log.records[-1]
    log.append(again.key, again.value, again.topic)
    stated = value_hash(events[index_of(events, "cua.training.started")].value)
    late = RestDropped(value_sha256=stated, made_by="tester")
    append(log, Decision(events[index].subject, None, late))

    project(log, migrated_url)

    assert list_unapplied(operator) == []
    assert [row["status"] for row in database_tables(migrated_url)["training"].values()] == [
        "completed"
    ]
    assert verify(MemoryReader(log), migrated_url).equal
    expect_log(migrated_url, log)


def with_known(log: MemoryLog, unknown_: bytes, known: bytes) -> MemoryLog:
    """As if the code that did not know a record had read this very log."""
    healed = MemoryLog()
    for record in log.records:
        value = record.value.replace(unknown_, known)
        value = value.replace(value_hash(unknown_).encode(), value_hash(known).encode())
        healed.append(record.key, value, record.topic)
    return healed


def test_a_drop_that_comes_after_newer_code_has_applied_the_record_has_no_effect(
    migrated_url: str, operator: Operator
) -> None:
    events = logged_events("a", shape=CALM)
    index = index_of(events, "cua.training.heartbeat_sent")
    stream, known = events[index]
    spoilt = unknown(events, index)
    log = memory_log(spoilt)
    project(log, migrated_url)
    drop_record(log, migrated_url, list_unapplied(operator)[0].id, rest=True)
    healed = with_known(log, spoilt[index].value, known)
    with connected(migrated_url, "test") as newer, newer, newer.cursor() as cursor:
        cursor.execute(
            "UPDATE cua.unapplied_record SET value = %s WHERE kind = 'unknown_schema'", (known,)
        )
        cursor.execute("UPDATE cua.projection SET catalogue_hash = 'older'")

    project(healed, migrated_url)

    assert list_unapplied(operator) == []
    expect(migrated_url, events)
    healed.append(stream, b"{", "cua.training")
    project(healed, migrated_url)
    drop_record(healed, migrated_url, list_unapplied(operator)[0].id, rest=True)
    project(healed, migrated_url)
    assert [unapplied.state for unapplied in list_unapplied(operator)] == ["refused"]
    assert verify(MemoryReader(healed), migrated_url).equal
    assert rebuild(MemoryReader(healed), migrated_url).changed == 0
    # First the one that has taken effect, then the other.
    undone = []
    for _ in range(2):
        undone.append(undo_rest(healed, migrated_url, stream).payload)
        project(healed, migrated_url)
    assert [getattr(payload, "value_sha256", None) for payload in undone] == [
        value_hash(b"{"),
        value_hash(known),
    ]
    drops = f"SELECT drops FROM cua.stream_position WHERE stream = '{stream}'"
    assert one(migrated_url, drops) == {}
    assert [unapplied.state for unapplied in list_unapplied(operator)] == ["parked"]
    with pytest.raises(NotFoundError, match="or that decision is not read yet"):
        undo_rest(healed, migrated_url, stream)


def test_what_was_dropped_stays_dropped_when_newer_code_could_apply_it(
    migrated_url: str, operator: Operator
) -> None:
    events = logged_events("a", shape=CALM)
    index = index_of(events, "cua.training.heartbeat_sent")
    spoilt = unknown(events, index)
    log = memory_log(spoilt)
    project(log, migrated_url)
    drop_record(log, migrated_url, list_unapplied(operator)[0].id)
    project(log, migrated_url)
    known, unknown_ = events[index].value, spoilt[index].value
    healed = with_known(log, unknown_, known)
    execute(
        migrated_url,
        "UPDATE cua.stream_position SET drops = replace(drops::text,"
        f" '{value_hash(unknown_)}', '{value_hash(known)}')::jsonb",
    )

    assert verify(MemoryReader(healed), migrated_url).differences == []
    assert rebuild(MemoryReader(healed), migrated_url).equal

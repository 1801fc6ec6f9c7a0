"""What a decision lets through is tried in parts, which nothing shows."""

import json

import pytest

from consumers.database.connection import Connection
from consumers.fold.parse import parse_record
from consumers.projection.decisions import Decision
from consumers.projection.loop import ProjectionLoop
from consumers.projection.operators import Operator
from consumers.projection.schema import ProjectedSchema
from consumers.rebuild.verify import verify
from schemas.decision import (
    RecordDropped,
    value_hash,
)
from tests.consumers.projection.test_decisions import expect_log
from tests.consumers.projection.test_retry import (
    CALM,
    connection,
    index_of,
    operator,
    project,
    unknown,
)
from tests.reference_fold.histories import LoggedEvent
from tests.support.decisions import append, drop_record, undo_rest
from tests.support.logs import logged_events, memory_log
from tests.support.memory_log import MemoryReader
from tests.support.unapplied import list_unapplied

__all__ = ["connection", "operator"]

pytestmark = pytest.mark.services


@pytest.mark.parametrize("size", [700, 10_000])
def test_decisions_about_a_long_stream_follow_each_other_however_they_are_batched(
    migrated_url: str, operator: Operator, size: int
) -> None:
    events = logged_events("a", shape=CALM)
    index = index_of(events, "cua.training.heartbeat_sent")
    stream, value = events[index]
    first = json.loads(value)["sequence"]
    beats = [
        LoggedEvent(stream, value.replace(b'"sequence":%d' % first, b'"sequence":%d' % number))
        for number in range(first, first + 1_500)
    ]
    # The second record that is given up, and the decision about it, are tried in different parts.
    spoilt = unknown(unknown([*events[:index], *beats], index), index + 10)
    log = memory_log(spoilt)
    for number in (index, index + 10):
        dropped = RecordDropped(value_sha256=value_hash(spoilt[number].value), made_by="tester")
        append(log, Decision(stream, None, dropped))

    ProjectionLoop(MemoryReader(log), migrated_url, batch_records=size).run_once()

    assert list_unapplied(operator) == []
    expect_log(migrated_url, log)
    assert verify(MemoryReader(log), migrated_url).equal


def test_a_projector_keeps_its_lease_between_the_parts_of_a_decision(
    migrated_url: str, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consumers.projection.retry.BATCH_RECORDS", 5)
    events = logged_events("a")
    log = memory_log(unknown(events, index_of(events, "cua.training.heartbeat_sent")))
    project(log, migrated_url)
    unapplied = list_unapplied(Operator(connection, "cua"))
    drop_record(log, migrated_url, unapplied[0].id, rest=True)
    schema = ProjectedSchema(connection, "cua", log.log_id)
    schema.load()
    renewed: list[int] = []

    schema.apply([parse_record(log.records[-1])], keep_going=lambda: renewed.append(1))

    assert len(renewed) == -(-len(unapplied) // 5) > 1


def test_the_rest_of_a_long_stream_is_given_up_and_taken_up_again(
    migrated_url: str, operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consumers.projection.retry.BATCH_RECORDS", 5)
    events = logged_events("a")
    index = index_of(events, "cua.training.heartbeat_sent")
    log = memory_log(unknown(events, index))
    project(log, migrated_url)
    unapplied = list_unapplied(operator)
    assert len(unapplied) > 20

    drop_record(log, migrated_url, unapplied[0].id, rest=True)
    project(log, migrated_url)

    assert [item.state for item in list_unapplied(operator)] == ["refused"] * len(unapplied)
    assert verify(MemoryReader(log), migrated_url).equal
    undo_rest(log, migrated_url, unapplied[0].stream)
    project(log, migrated_url)
    assert list_unapplied(operator) == unapplied

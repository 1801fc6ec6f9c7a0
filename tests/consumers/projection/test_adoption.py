"""Tables go on with another log only if it holds all that they hold."""

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from consumers.database.connection import connect
from consumers.errors import MismatchError
from consumers.projection.loop import ProjectionLoop
from consumers.projection.operators import Operator
from consumers.rebuild.rebuild import rebuild
from consumers.rebuild.verify import verify
from consumers.status import read_status
from tests.consumers.projection.test_projection import assert_equal_to_reference
from tests.consumers.projection.test_retry import CALM, project, unknown
from tests.reference_fold.comparison import database_tables
from tests.reference_fold.histories import LoggedEvent
from tests.support.decisions import drop_gap, drop_record, undo_rest
from tests.support.logs import logged_events, memory_log
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.unapplied import list_unapplied

pytestmark = pytest.mark.services


def test_positions_of_another_log_are_refused_until_it_is_adopted(migrated_url: str) -> None:
    events = logged_events("a")
    ProjectionLoop(
        MemoryReader(memory_log(events[:150], MemoryLog("old"))), migrated_url
    ).run_once()
    new = memory_log(events, MemoryLog("new", num_partitions=5))

    with pytest.raises(MismatchError, match="--adopt-log"):
        ProjectionLoop(MemoryReader(new), migrated_url).run_once()
    ProjectionLoop(MemoryReader(new), migrated_url, adopt=True).run_once()

    assert_equal_to_reference(migrated_url, new)
    assert read_status(MemoryReader(new), migrated_url).unapplied.duplicates == 150


def test_a_projector_whose_tables_are_rebuilt_from_another_log_ends_and_adds_nothing(
    migrated_url: str,
) -> None:
    """Two installations that share one database: the other one's rebuild replaces the tables."""
    events = logged_events("a")
    ours = memory_log(events[:200], MemoryLog("ours"))
    # Every position in it is one of ours, too.
    other = memory_log(events[:20], MemoryLog("other"))
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        ends = pool.submit(ProjectionLoop(MemoryReader(ours), migrated_url).run_forever, stop)
        try:
            deadline = time.monotonic() + 30
            while read_status(MemoryReader(ours), migrated_url).lag_events:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            rebuild(MemoryReader(other), migrated_url, adopt_log=True)
            before = database_tables(migrated_url)

            memory_log(events[200:], ours)

            with pytest.raises(MismatchError, match=r"made from the log other:.*, but .* is ours"):
                ends.result(30)
        finally:
            stop.set()
    assert database_tables(migrated_url) == before
    assert verify(MemoryReader(other), migrated_url).equal


def test_a_log_that_lacks_history_is_not_adopted(migrated_url: str) -> None:
    events = logged_events("a")
    ProjectionLoop(MemoryReader(memory_log(events, MemoryLog("old"))), migrated_url).run_once()
    before = database_tables(migrated_url)
    streams = {event.subject for event in events}
    rollout = next(name for name in sorted(streams) if name.startswith("rollout/"))
    last = max(number for number, one in enumerate(events) if one.subject == rollout)
    without_last = MemoryLog("new")
    memory_log(events[:last] + events[last + 1 :], without_last)

    with pytest.raises(MismatchError, match=rf"1 of {len(streams)} streams .* {rollout}"):
        ProjectionLoop(MemoryReader(without_last), migrated_url, adopt=True).run_once()
    with pytest.raises(MismatchError, match=rf"{len(streams)} of {len(streams)} streams"):
        ProjectionLoop(MemoryReader(MemoryLog("empty")), migrated_url, adopt=True).run_once()

    assert database_tables(migrated_url) == before
    assert read_status(MemoryReader(memory_log(events, MemoryLog("old"))), migrated_url)


def test_a_log_of_another_writer_is_not_adopted(migrated_url: str) -> None:
    events = logged_events("a")
    ProjectionLoop(MemoryReader(memory_log(events, MemoryLog("old"))), migrated_url).run_once()
    others = [
        LoggedEvent(event.subject, event.value.replace(b'"source":"', b'"source":"x'))
        for event in events
    ]

    with pytest.raises(MismatchError, match="this log lacks what the tables contain"):
        ProjectionLoop(
            MemoryReader(memory_log(others, MemoryLog("new"))), migrated_url, adopt=True
        ).run_once()


def test_parked_waiting_and_nameless_records_are_kept_once_where_an_adopted_log_has_them(
    migrated_url: str,
) -> None:
    events = logged_events("a", "b", shape=CALM)
    turns = [number for number, one in enumerate(events) if b"rollout.turn_taken" in one.value]
    spoilt = unknown(events, turns[0])
    missing = next(n for n in turns if spoilt[n].subject != spoilt[turns[0]].subject)
    late = spoilt.pop(missing)
    spoilt.insert(3, LoggedEvent("", b"noise"))
    project(memory_log_with_noise(spoilt, MemoryLog("old")), migrated_url)
    connection = connect(migrated_url, "test")
    operator = Operator(connection, "cua")
    before = list_unapplied(operator)
    assert {unapplied.state for unapplied in before} == {"parked", "waiting"}
    new = memory_log_with_noise(spoilt, MemoryLog("new", num_partitions=7))

    ProjectionLoop(MemoryReader(new), migrated_url, adopt=True).run_once()

    after = list_unapplied(operator)
    assert sorted(unapplied[4:10] for unapplied in after) == sorted(
        unapplied[4:10] for unapplied in before
    )
    at = {(record.topic, record.partition, record.offset): record.value for record in new.records}
    for unapplied in after:
        assert (
            at[unapplied.topic, unapplied.partition, unapplied.offset]
            == operator.show(unapplied.id)[1]
        )
    culprit = next(unapplied for unapplied in after if unapplied.kind == "unknown_schema")
    drop_record(new, migrated_url, culprit.id, rest=True)
    new.append(late.subject, late.value, "cua.rollouts")
    project(new, migrated_url)
    assert [unapplied.kind for unapplied in list_unapplied(operator, "parked")] == ["unreadable"]
    assert {unapplied.stream for unapplied in list_unapplied(operator, "refused")} == {
        culprit.stream
    }
    connection.close()
    assert verify(MemoryReader(new), migrated_url).equal


def test_behind_a_gap_that_was_given_up_the_same_is_parked_live_and_in_an_adopted_log(
    migrated_url: str,
) -> None:
    events = logged_events("a", shape=CALM)
    own = events[0].subject
    of_training = [number for number, one in enumerate(events) if one.subject == own]
    # Its third record is missing; the fourth, which the operator lets follow it, cannot be applied.
    spoilt = unknown(events, of_training[3])
    del spoilt[of_training[2]]
    old = memory_log(spoilt, MemoryLog("old"))
    project(old, migrated_url)
    connection = connect(migrated_url, "test")
    operator = Operator(connection, "cua")

    drop_gap(old, migrated_url, own)
    project(old, migrated_url)

    live = Counter((unapplied.state, unapplied.kind) for unapplied in list_unapplied(operator))
    num_behind = len(of_training) - 4
    assert live == {("parked", "unknown_schema"): 1, ("parked", "behind"): num_behind}
    decision = LoggedEvent(own, old.records[-1].value)
    new = memory_log([*spoilt, decision], MemoryLog("new", num_partitions=5))
    ProjectionLoop(MemoryReader(new), migrated_url, adopt=True).run_once()
    assert (
        Counter((unapplied.state, unapplied.kind) for unapplied in list_unapplied(operator)) == live
    )

    culprit = next(
        unapplied for unapplied in list_unapplied(operator) if unapplied.kind == "unknown_schema"
    )
    drop_record(new, migrated_url, culprit.id)
    project(new, migrated_url)
    connection.close()
    assert verify(MemoryReader(new), migrated_url).equal


def memory_log_with_noise(events: list[LoggedEvent], log: MemoryLog) -> MemoryLog:
    for event in events:
        if event.subject:
            memory_log([event], log)
        else:
            log.append(None, event.value, "cua.rollouts", 0)
    return log


def test_a_stream_that_was_dropped_is_dropped_in_an_adopted_log_and_taken_up_again_there(
    migrated_url: str,
) -> None:
    events = logged_events("a", shape=CALM)
    number = next(n for n, one in enumerate(events) if b"rollout.turn_taken" in one.value)
    old = memory_log(unknown(events, number), MemoryLog("old"))
    project(old, migrated_url)
    connection = connect(migrated_url, "test")
    operator = Operator(connection, "cua")
    unapplied = list_unapplied(operator)
    drop_record(old, migrated_url, unapplied[0].id, rest=True)
    project(old, migrated_url)
    new = MemoryLog("new", num_partitions=7)
    for record in old.records:
        new.append(record.key, record.value, record.topic)

    ProjectionLoop(MemoryReader(new), migrated_url, adopt=True).run_once()

    assert [item.state for item in list_unapplied(operator)] == ["refused"] * len(unapplied)
    assert verify(MemoryReader(new), migrated_url).equal
    undo_rest(new, migrated_url, unapplied[0].stream)
    project(new, migrated_url)
    assert [item.state for item in list_unapplied(operator)] == ["parked"] * len(unapplied)
    connection.close()
    assert verify(MemoryReader(new), migrated_url).equal

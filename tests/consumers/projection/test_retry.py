"""Records that cannot be applied are kept, listed, tried again and given up; rebuilds honour it."""

import json
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from consumers.database.connection import Connection, connected, join_group, session_group
from consumers.errors import LimitExceededError
from consumers.projection.lock_watch import LockWatch
from consumers.projection.loop import ProjectionLoop
from consumers.projection.operators import Operator
from consumers.rebuild.verify import verify
from tests.reference_fold.comparison import database_tables, differences, plain_tables
from tests.reference_fold.histories import LoggedEvent, Shape
from tests.reference_fold.reference import fold
from tests.support.logs import logged_events, memory_log
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.unapplied import list_unapplied

pytestmark = pytest.mark.services
CALM = Shape(steps=1, groups=1, group_size=1, turns=3, has_trouble=False)


@pytest.fixture
def connection(migrated_url: str) -> Iterator[Connection]:
    with connected(migrated_url, "test") as opened:
        yield opened


@pytest.fixture
def operator(connection: Connection) -> Operator:
    return Operator(connection, "cua")


def project(log: MemoryLog, url: str) -> None:
    ProjectionLoop(MemoryReader(log), url).run_once()


def expect(url: str, events: list[LoggedEvent]) -> None:
    """The tables are the reference fold of these events."""
    expected = fold((event.subject, event.value) for event in events)
    assert differences(plain_tables(expected.tables), database_tables(url)) == []


def index_of(events: list[LoggedEvent], type_: str, number: int = 0) -> int:
    found = [index for index, one in enumerate(events) if json.loads(one.value)["type"] == type_]
    return found[number]


def garbled(events: list[LoggedEvent], index: int) -> list[LoggedEvent]:
    return [*events[:index], LoggedEvent(events[index].subject, b"{"), *events[index + 1 :]]


def unknown(events: list[LoggedEvent], index: int) -> list[LoggedEvent]:
    value = events[index].value.replace(b'"dataschema":"urn:cua:', b'"dataschema":"urn:cua:later.')
    value = value.replace(b'"type":"cua.', b'"type":"later.', 1)
    return [*events[:index], LoggedEvent(events[index].subject, value), *events[index + 1 :]]


def test_everything_behind_a_parked_record_is_parked_in_order_and_other_streams_go_on(
    migrated_url: str, operator: Operator
) -> None:
    events = logged_events("a", shape=CALM)
    index = index_of(events, "cua.rollout.turn_taken", 1)
    stream = [event for event in events if event.subject == events[index].subject]

    project(memory_log(unknown(events, index)), migrated_url)

    unapplied = list_unapplied(operator)
    behind = len(stream) - stream.index(events[index]) - 1
    assert [record.kind for record in unapplied] == ["unknown_schema"] + ["behind"] * behind
    assert {record.stream for record in unapplied} == {events[index].subject}
    before = [event for event in events[:index] if event.subject == events[index].subject]
    expect(
        migrated_url, before + [event for event in events if event.subject != events[index].subject]
    )


def test_trying_again_with_the_same_code_parks_the_same(
    migrated_url: str, operator: Operator
) -> None:
    events = logged_events("a", shape=CALM)
    project(memory_log(unknown(events, index_of(events, "cua.step.created"))), migrated_url)
    before = list_unapplied(operator)

    result = operator.retry()

    assert (result.streams, result.events, result.still_parked) == (1, 0, len(before))
    assert list_unapplied(operator) == before


def of_another_value(events: list[LoggedEvent], index: int) -> list[LoggedEvent]:
    """A phase that no version knows."""
    value = events[index].value.replace(b'"current_phase":"', b'"current_phase":"later_')
    return [*events[:index], LoggedEvent(events[index].subject, value), *events[index + 1 :]]


def of_another_transition(events: list[LoggedEvent], index: int) -> list[LoggedEvent]:
    """A training that has not begun pauses."""
    value = events[index].value.replace(b".training.initialization_started", b".training.paused")
    return [*events[:index], LoggedEvent(events[index].subject, value), *events[index + 1 :]]


@pytest.mark.parametrize(
    ("spoil", "type_", "kind"),
    [
        (unknown, "cua.step.created", "unknown_schema"),
        (of_another_value, "cua.step.progressed", "invalid"),
        (of_another_transition, "cua.training.initialization_started", "transition"),
    ],
)
def test_a_newer_projector_tries_again_what_an_older_one_did_not_know(
    migrated_url: str,
    connection: Connection,
    spoil: Callable[[list[LoggedEvent], int], list[LoggedEvent]],
    type_: str,
    kind: str,
) -> None:
    events = logged_events("a", shape=CALM)
    log = memory_log(events)
    index = index_of(events, type_)
    project(memory_log(spoil(events, index)), migrated_url)
    # As if the code that knew no such event had read this very log.
    with connection, connection.cursor() as cursor:
        cursor.execute(
            "UPDATE cua.unapplied_record SET value = %s WHERE kind = %s",
            (events[index].value, kind),
        )
        assert cursor.rowcount == 1
        cursor.execute("UPDATE cua.projection SET catalogue_hash = 'older'")
    assert verify(MemoryReader(log), migrated_url).retryable == [events[index].subject]
    assert verify(MemoryReader(log), migrated_url).equal

    ProjectionLoop(MemoryReader(log), migrated_url).run_once()

    expect(migrated_url, events)
    assert verify(MemoryReader(log), migrated_url).retryable == []


def test_a_gap_that_fills_releases_what_waited(migrated_url: str, operator: Operator) -> None:
    events = logged_events("a", shape=CALM)
    index = index_of(events, "cua.training.started")
    log = memory_log(events[:index] + events[index + 1 :])
    project(log, migrated_url)
    assert {unapplied.state for unapplied in list_unapplied(operator)} == {"waiting"}

    log.append(events[index].subject, events[index].value, "cua.training")
    project(log, migrated_url)

    assert list_unapplied(operator) == []
    expect(migrated_url, events)


def test_a_long_stream_is_retried_in_batches_and_goes_on_where_it_was_interrupted(
    migrated_url: str, connection: Connection
) -> None:
    num_beats = 1_000
    events = logged_events("a", shape=CALM)
    index = index_of(events, "cua.training.heartbeat_sent")
    stream, value = events[index]
    beat = json.loads(value)
    events = events[: index + 1] + [
        LoggedEvent(stream, json.dumps(beat | {"sequence": beat["sequence"] + number}).encode())
        for number in range(1, num_beats)
    ]
    log = memory_log(unknown(events, index))
    project(log, migrated_url)
    with connection, connection.cursor() as cursor:
        # As if the code that knew no heartbeats had read this very log.
        cursor.execute(
            "UPDATE cua.unapplied_record SET value = %s WHERE kind = 'unknown_schema'", (value,)
        )
    healed = memory_log(events)
    operator = Operator(connection, "cua", batch_records=300)
    batches = count(1)

    def interrupt() -> None:
        if next(batches) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        operator.retry(after_batch=interrupt)

    assert len(list_unapplied(operator)) == num_beats - 3 * 300
    assert verify(MemoryReader(healed), migrated_url).retryable == [stream]
    assert verify(MemoryReader(healed), migrated_url).differences == []
    # What comes meanwhile is parked behind the rest.
    last = json.dumps(beat | {"sequence": beat["sequence"] + num_beats}).encode()
    for item in (log, healed):
        item.append(stream, last, "cua.training")
    project(log, migrated_url)
    assert {unapplied.state for unapplied in list_unapplied(operator)} == {"parked"}

    assert operator.retry() == (1, num_beats - 3 * 300 + 1, 0)

    assert list_unapplied(operator) == []
    expect(migrated_url, [*events, LoggedEvent(stream, last)])
    assert verify(MemoryReader(healed), migrated_url).equal


def test_a_record_that_cannot_be_applied_stops_a_retry_and_the_rest_is_left_alone(
    migrated_url: str, connection: Connection
) -> None:
    events = logged_events("a")
    index = index_of(events, "cua.training.heartbeat_sent")
    project(memory_log(unknown(events, index)), migrated_url)
    operator = Operator(connection, "cua", batch_records=5)
    before = list_unapplied(operator)

    assert operator.retry() == (1, 0, len(before))

    assert list_unapplied(operator) == before


def test_a_retry_waits_for_no_lock_for_ever_and_names_its_holder(migrated_url: str) -> None:
    project(memory_log(unknown(logged_events("a", shape=CALM), 5)), migrated_url)
    with (
        connected(migrated_url, "of a user") as user,
        connected(migrated_url, "parked", {"lock_timeout": "1s"}) as connection,
        LockWatch(migrated_url, session_group("operator")) as watch,
    ):
        join_group(connection, session_group("operator"))
        with user.cursor() as cursor:
            cursor.execute("LOCK TABLE cua.reader_position IN SHARE MODE")
        operator = Operator(connection, "cua", watch=watch, limit_s=4)

        with pytest.raises(LimitExceededError, match=rf"process {user.info.backend_pid} \("):
            operator.retry()

        user.rollback()
        assert operator.retry().streams == 1

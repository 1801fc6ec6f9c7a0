"""The projector: exactly once, whatever other projectors, the database or the log do."""

import logging
import threading
from itertools import count

import psycopg2
import pytest

from consumers.database.connection import connected
from consumers.errors import CuaProjectError, MismatchError, UnreachableError
from consumers.log.reader import LogRecord, TopicPartition
from consumers.projection.loop import ProjectionLoop
from consumers.projection.pipeline import Pipeline
from consumers.status import read_status
from tests.reference_fold.comparison import database_tables, differences, plain_tables
from tests.reference_fold.histories import LoggedEvent, Shape
from tests.reference_fold.reference import fold
from tests.support.eventually import eventually
from tests.support.logs import logged_events, memory_log
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.postgres import execute, one

pytestmark = pytest.mark.services
DEADLINE_S = 60.0


def assert_equal_to_reference(url: str, log: MemoryLog) -> None:
    reference = fold((record.key, record.value) for record in log.records)
    assert differences(plain_tables(reference.tables), database_tables(url)) == []


def test_once_applies_everything_and_a_second_time_nothing(migrated_url: str) -> None:
    log = memory_log(logged_events("a", "b"))

    first = ProjectionLoop(MemoryReader(log), migrated_url).run_once()
    second = ProjectionLoop(MemoryReader(log), migrated_url).run_once()

    assert first.events == len(log.records)
    assert second.events == 0
    assert (
        first.positions
        == second.positions
        == MemoryReader(log).end_offsets(MemoryReader(log).partitions())
    )
    assert_equal_to_reference(migrated_url, log)


def test_once_on_an_empty_log_is_done_at_once(migrated_url: str) -> None:
    assert ProjectionLoop(MemoryReader(MemoryLog()), migrated_url).run_once().events == 0


def test_what_is_appended_while_it_runs_is_projected_and_so_are_new_partitions(
    migrated_url: str,
) -> None:
    events = logged_events("a")
    log = memory_log(events[:50])
    stop = threading.Event()
    worker = threading.Thread(
        target=ProjectionLoop(MemoryReader(log), migrated_url).run_forever, args=(stop,)
    )
    worker.start()
    try:
        eventually(lambda: read_status(MemoryReader(log), migrated_url).lag_events == 0)
        memory_log(events[50:], log)
        eventually(lambda: read_status(MemoryReader(log), migrated_url).lag_events == 0)
    finally:
        stop.set()
        worker.join(DEADLINE_S)
    assert_equal_to_reference(migrated_url, log)


def test_a_lost_connection_is_waited_out(migrated_url: str) -> None:
    events = logged_events("a", "b")
    log = memory_log(events[:100])
    stop = threading.Event()
    worker = threading.Thread(
        target=ProjectionLoop(MemoryReader(log), migrated_url, batch_records=10).run_forever,
        args=(stop,),
    )
    worker.start()
    try:
        for number in range(5):
            eventually(lambda: read_status(MemoryReader(log), migrated_url).lag_events == 0)
            terminate = (
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE"
                " application_name = 'cua-project run'"
            )
            one(migrated_url, f"{terminate} AND datname = current_database()")
            memory_log(events[100 + number * 40 : 140 + number * 40], log)
        memory_log(events[300:], log)
        eventually(lambda: read_status(MemoryReader(log), migrated_url).lag_events == 0)
    finally:
        stop.set()
        worker.join(DEADLINE_S)
    assert_equal_to_reference(migrated_url, log)


def test_once_gives_up_on_a_database_that_stays_away() -> None:
    nowhere = "postgresql+psycopg2://nobody@127.0.0.1:1/nothing"

    with pytest.raises(UnreachableError, match=r"gave up after 0 s: .*nobody@127\.0\.0\.1:1"):
        ProjectionLoop(MemoryReader(memory_log(logged_events("a"))), nowhere).run_once(limit_s=0)


def test_once_waits_out_a_failure_after_long_work_and_logs_it_once(
    migrated_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    log = memory_log(logged_events("a", "b"))

    class Slow(MemoryReader):
        """Each poll takes an hour; after the second the log is away three times, a second each."""

        polls = 0
        now_s = 0.0

        def poll(self, max_records: int, timeout_s: float) -> list[LogRecord]:
            self.polls += 1
            if self.polls in {3, 4, 5}:
                self.now_s += 1
                message = "the log is away"
                raise UnreachableError(message)
            self.now_s += 3600
            return super().poll(min(20, max_records), timeout_s)

    reader = Slow(log)

    ProjectionLoop(reader, migrated_url, clock=lambda: reader.now_s).run_once(limit_s=60)

    assert reader.polls > 6
    assert caplog.messages == [
        "the log is away; retrying until it works",
        "works again after 3603 s",
    ]
    assert_equal_to_reference(migrated_url, log)


def test_once_gives_up_on_a_database_that_takes_batches_and_refuses_every_commit(
    migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(MemoryReader):
        """Each answer takes 20 seconds."""

        polls = 0

        def poll(self, max_records: int, timeout_s: float) -> list[LogRecord]:
            self.polls += 1
            assert self.polls < 20, "it does not give up"
            return super().poll(max_records, timeout_s)

    sends = count(1)

    def send(*_: object) -> None:
        """A batch commits while the next is folded: the second call raises the first's failure."""
        if next(sends) % 2 == 0:
            message = "the disk is full"
            raise psycopg2.OperationalError(message)

    monkeypatch.setattr(Pipeline, "send", send)
    reader = Slow(memory_log(logged_events("a", "b")))

    with pytest.raises(UnreachableError, match="gave up after 60 s: the disk is full"):
        ProjectionLoop(
            reader, migrated_url, batch_records=20, clock=lambda: 20.0 * reader.polls
        ).run_once(limit_s=60)


def test_only_the_record_with_a_number_beyond_its_column_is_parked(migrated_url: str) -> None:
    events = logged_events("a")
    index = next(number for number, one in enumerate(events) if b"cua.rollout.created" in one.value)
    culprit = events[index]
    before, after = culprit.value.split(b'"seed":')
    events[index] = LoggedEvent(
        culprit.subject, before + b'"seed":' + str(2**70).encode() + after[after.index(b"}") :]
    )
    log = memory_log(events)

    ProjectionLoop(MemoryReader(log), migrated_url).run_once()

    of_stream = [event for event in events if event.subject == culprit.subject]
    kinds = one(
        migrated_url,
        "SELECT json_object_agg(kind, number) FROM (SELECT kind, count(*) AS number FROM"
        " cua.unapplied_record GROUP BY 1) x",
    )
    assert kinds == {"invalid": 1, "behind": len(of_stream) - 1}
    assert "seed must be at least -9223372036854775808" in str(
        one(migrated_url, "SELECT reason FROM cua.unapplied_record WHERE kind = 'invalid'")
    )
    others = fold(
        (record.key, record.value) for record in log.records if record.key != culprit.subject
    )
    assert differences(plain_tables(others.tables), database_tables(migrated_url)) == []


def test_what_the_database_alone_refuses_is_found_within_its_batch(migrated_url: str) -> None:
    with connected(migrated_url, "test") as connection, connection.cursor() as cursor:
        cursor.execute("ALTER TABLE cua.turn ADD CONSTRAINT users_own CHECK (turn < 3)")
        connection.commit()
    log = memory_log(logged_events("a", shape=Shape(turns=3, has_trouble=False)))

    ProjectionLoop(MemoryReader(log), migrated_url).run_once()

    refused = one(
        migrated_url,
        "SELECT json_agg(DISTINCT type) FROM cua.unapplied_record WHERE kind = 'database' AND"
        " reason LIKE '%users_own%'",
    )
    assert refused == ["cua.rollout.turn_taken"]
    status = read_status(MemoryReader(log), migrated_url)
    assert [training.status for training in status.trainings] == ["completed"]


def test_a_parked_training_is_shown_with_since_when(migrated_url: str) -> None:
    events = logged_events("a")
    index = next(
        number for number, one in enumerate(events) if b"cua.training.heartbeat_sent" in one.value
    )
    events[index] = LoggedEvent(
        events[index].subject, events[index].value.replace(b"heartbeat_sent", b"dreamt")
    )
    log = memory_log(events)

    ProjectionLoop(MemoryReader(log), migrated_url).run_once()

    (training,) = read_status(MemoryReader(log), migrated_url).trainings
    assert training.parked_since is not None
    assert events[index].value.decode().split('"time":"')[1].startswith(training.parked_since[:19])


def test_a_log_that_ends_before_the_position_is_refused(migrated_url: str) -> None:
    events = logged_events("a")
    ProjectionLoop(MemoryReader(memory_log(events)), migrated_url).run_once()

    with pytest.raises(MismatchError, match="this is another log, or it was truncated"):
        ProjectionLoop(MemoryReader(memory_log(events[:100])), migrated_url).run_once()


def test_a_log_whose_next_records_were_deleted_is_refused(migrated_url: str) -> None:
    log = memory_log(logged_events("a"))
    first = MemoryReader(log).partitions()[0]
    log.first_kept[TopicPartition(*first)] = 3

    with pytest.raises(CuaProjectError, match="records were deleted"):
        ProjectionLoop(MemoryReader(log), migrated_url).run_once()


def test_tables_of_another_projection_version_must_be_rebuilt(migrated_url: str) -> None:
    log = memory_log(logged_events("a"))
    ProjectionLoop(MemoryReader(log), migrated_url).run_once()
    execute(migrated_url, "UPDATE cua.projection SET version = 0")

    with pytest.raises(MismatchError, match="run `cua-project rebuild`"):
        ProjectionLoop(MemoryReader(log), migrated_url).run_once()


def test_a_projector_that_an_error_ends_gives_its_lease_back(migrated_url: str) -> None:
    log = memory_log(logged_events("a"))
    ProjectionLoop(MemoryReader(log), migrated_url).run_once()
    execute(migrated_url, "UPDATE cua.projection SET version = version + 1")

    with pytest.raises(MismatchError):
        ProjectionLoop(MemoryReader(log), migrated_url).run_once()

    assert one(migrated_url, "SELECT count(*) FROM cua_ops.lease") == 0


def test_a_projector_that_is_stopped_while_the_log_is_away_gives_its_lease_back(
    migrated_url: str,
) -> None:
    stop = threading.Event()

    class Away(MemoryReader):
        """Away from the first poll on, after which the projector is stopped."""

        def poll(self, max_records: int, timeout_s: float) -> list[LogRecord]:  # noqa: ARG002
            stop.set()
            message = "the log is away"
            raise UnreachableError(message)

    ProjectionLoop(Away(memory_log(logged_events("a"))), migrated_url).run_forever(stop)

    assert one(migrated_url, "SELECT count(*) FROM cua_ops.lease") == 0


def test_a_silent_holder_loses_its_lease_and_a_dead_one_at_once(migrated_url: str) -> None:
    from consumers.database.lease import acquire

    with connected(migrated_url, "one") as one, connected(migrated_url, "two") as two:
        with one, one.cursor() as cursor:
            assert acquire(cursor, "one")
        with two, two.cursor() as cursor:
            assert not acquire(cursor, "two")
            cursor.execute(
                "UPDATE cua_ops.lease SET renewed_at = renewed_at - interval '11 seconds'"
            )
            assert acquire(cursor, "two")
    with connected(migrated_url, "three") as three, three, three.cursor() as cursor:
        eventually(lambda: acquire(cursor, "three"))

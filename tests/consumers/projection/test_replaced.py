"""A projector that another one replaced changes nothing, and goes on when the lease is free."""

import threading

import pytest

from consumers.database.connection import connected
from consumers.fold.parse import parse_record
from consumers.log.reader import LogRecord
from consumers.projection.loop import ProjectionLoop
from consumers.projection.positions import SupersededError
from consumers.projection.schema import ProjectedSchema
from consumers.status import read_status
from tests.consumers.projection.test_projection import DEADLINE_S, assert_equal_to_reference
from tests.reference_fold.comparison import database_tables
from tests.support.eventually import eventually
from tests.support.logs import logged_events, memory_log
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.postgres import execute, one

pytestmark = pytest.mark.services


def test_a_projector_that_was_replaced_changes_nothing(migrated_url: str) -> None:
    log = memory_log(logged_events("a"))
    parsed = [parse_record(record) for record in log.records]
    with (
        connected(migrated_url, "zombie") as paused,
        connected(migrated_url, "successor") as working,
    ):
        zombie, successor = (
            ProjectedSchema(connection, "cua", log.log_id) for connection in (paused, working)
        )
        for schema in (zombie, successor):
            schema.load()
        zombie.apply(parsed[:20])
        successor.load()
        successor.apply(parsed[20:120])
        before = database_tables(migrated_url)

        with pytest.raises(SupersededError):
            zombie.apply(parsed[20:60])

        assert database_tables(migrated_url) == before
        zombie.load()
        zombie.apply(parsed[120:])
    assert_equal_to_reference(migrated_url, log)


class Overtaken(MemoryReader):
    """The first two times it is read, another projector has the lease and is ten records ahead."""

    def __init__(self, log: MemoryLog, successor: ProjectedSchema) -> None:
        super().__init__(log)
        self._successor = successor
        self._remaining = [parse_record(record) for record in log.records[:20]]

    def poll(self, max_records: int, timeout_s: float) -> list[LogRecord]:
        successor, applied = self._successor, self._remaining[:10]
        del self._remaining[:10]
        if applied:
            with successor.connection as connection, connection.cursor() as cursor:
                cursor.execute(
                    "UPDATE cua_ops.lease SET holder = 'elsewhere/4711/nonce', renewed_at ="
                    " clock_timestamp(), (backend_pid, backend_start) = (SELECT pid, backend_start"
                    " FROM pg_stat_activity WHERE pid = pg_backend_pid())"
                )
            successor.load()
            successor.apply(applied)
        return super().poll(max_records, timeout_s)


def test_a_projector_that_was_replaced_asks_for_its_lease_before_it_applies_more(
    migrated_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    log = memory_log(logged_events("a"))
    stop = threading.Event()
    with connected(migrated_url, "successor") as working:
        reader = Overtaken(log, ProjectedSchema(working, "cua", log.log_id))
        worker = threading.Thread(
            target=ProjectionLoop(reader, migrated_url).run_forever, args=(stop,)
        )
        worker.start()
        try:
            eventually(lambda: any("(process 4711 on elsewhere" in m for m in caplog.messages))
            execute(migrated_url, "DELETE FROM cua_ops.lease")
            eventually(lambda: read_status(MemoryReader(log), migrated_url).lag_events == 0)
        finally:
            stop.set()
            worker.join(DEADLINE_S)
    assert_equal_to_reference(migrated_url, log)


def test_a_projector_that_is_stopped_after_it_was_replaced_ends_without_an_error(
    migrated_url: str,
) -> None:
    log = memory_log(logged_events("a"))
    stop = threading.Event()

    class Stopped(MemoryReader):
        """When it is first read, another projector is ten records ahead, and a stop arrives."""

        def poll(self, max_records: int, timeout_s: float) -> list[LogRecord]:
            if not stop.is_set():
                successor.load()
                successor.apply([parse_record(record) for record in log.records[:10]])
                stop.set()
            return super().poll(max_records, timeout_s)

    with connected(migrated_url, "successor") as working:
        successor = ProjectedSchema(working, "cua", log.log_id)
        report = ProjectionLoop(Stopped(log), migrated_url, batch_records=10).run_forever(stop)

    assert report.events == 0


def test_one_projector_works_and_the_next_takes_its_place(
    migrated_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    events = logged_events("a", "b")
    log = memory_log(events[:200])
    stops = [threading.Event(), threading.Event()]
    workers = [
        threading.Thread(
            target=ProjectionLoop(MemoryReader(log), migrated_url).run_forever, args=(stop,)
        )
        for stop in stops
    ]
    workers[0].start()
    try:
        eventually(lambda: one(migrated_url, "SELECT count(*) FROM cua_ops.lease") == 1)
        workers[1].start()
        eventually(lambda: any("another projector is running" in line for line in caplog.messages))
        holder = one(migrated_url, "SELECT holder FROM cua_ops.lease")
        stops[0].set()
        workers[0].join(DEADLINE_S)
        eventually(
            lambda: one(migrated_url, "SELECT holder FROM cua_ops.lease") not in {None, holder}
        )
        memory_log(events[200:], log)
        eventually(lambda: read_status(MemoryReader(log), migrated_url).lag_events == 0)
    finally:
        for stop, worker in zip(stops, workers, strict=True):
            stop.set()
            worker.join(DEADLINE_S)
    assert_equal_to_reference(migrated_url, log)

"""Readers delay a swap, and cost neither the finished replay nor the tables it would replace."""

import re
import threading
import time
from collections.abc import Iterator, Mapping

import pytest

from consumers.database.connection import Connection, connect, connected
from consumers.errors import CuaProjectError, LimitExceededError, UnreachableError
from consumers.log.reader import LogRecord, TopicPartition
from consumers.projection.positions import Positions
from consumers.rebuild.rebuild import rebuild, roll_back
from consumers.rebuild.side_schema import finish_tables, side_schema
from consumers.rebuild.swap import lock_tables, swap
from consumers.rebuild.verify import verify
from consumers.rebuild.waiting import Patience
from tests.reference_fold.histories import LoggedEvent
from tests.support.logs import memory_log
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.postgres import one
from tests.support.rebuilding import project

pytestmark = pytest.mark.services


@pytest.fixture
def reader(migrated_url: str) -> Iterator[Connection]:
    """A session with an open transaction that has read a table."""
    connection = connect(migrated_url, "slow report")
    connection.cursor().execute("SELECT count(*) FROM cua.turn")
    yield connection
    connection.close()


class _Counting(MemoryReader):
    """Counts the records that a replay reads."""

    num_read = 0

    def poll(self, max_records: int, timeout_s: float) -> list[LogRecord]:
        found = super().poll(max_records, timeout_s)
        self.num_read += len(found)
        return found


def test_a_reader_in_a_transaction_is_named_and_costs_neither_replay_nor_rollback(
    migrated_url: str, log: MemoryLog, reader: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    reader.rollback()
    with connected(migrated_url, "test") as connection, connection, connection.cursor() as cursor:
        cursor.execute("UPDATE cua.turn SET reward = 9")
    assert rebuild(MemoryReader(log), migrated_url).swapped
    reader.cursor().execute("SELECT count(*) FROM cua.turn")

    with pytest.raises(LimitExceededError) as error:
        rebuild(MemoryReader(log), migrated_url, swap_timeout_s=0.5)

    assert error.value.exit_code == 6
    pid = reader.info.backend_pid
    named = rf"process {pid} \(cua, cua-project slow report, idle in transaction for \d+ s\)"
    assert re.search(named, str(error.value))
    assert re.search(named, caplog.text)
    assert "`cua-project rebuild` continues with it" in str(error.value)
    assert one(migrated_url, "SELECT min(reward) FROM cua_previous.turn") == 9.0
    reader.rollback()
    counting = _Counting(log)
    report = rebuild(counting, migrated_url)
    assert (report.swapped, report.equal, report.events) == (True, True, len(log.records))
    assert counting.num_read == 0, "the finished replay was not taken up"
    assert verify(MemoryReader(log), migrated_url).equal
    assert one(migrated_url, "SELECT count(*) FROM pg_namespace WHERE nspname ~ '^cua_re'") == 0
    roll_back(migrated_url)


def test_a_finished_replay_catches_up_when_it_is_taken_up(
    migrated_url: str, log: MemoryLog, reader: Connection, events: list[LoggedEvent]
) -> None:
    with pytest.raises(LimitExceededError):
        rebuild(MemoryReader(log), migrated_url, swap_timeout_s=0.3)
    reader.rollback()
    memory_log(events[-20:], log)
    project(log, migrated_url)

    counting = _Counting(log)
    assert rebuild(counting, migrated_url).swapped

    assert counting.num_read == 20
    assert verify(MemoryReader(log), migrated_url).equal


def test_a_finished_replay_that_no_longer_honours_the_operators_is_made_again(
    migrated_url: str, log: MemoryLog, reader: Connection
) -> None:
    with pytest.raises(LimitExceededError):
        rebuild(MemoryReader(log), migrated_url, swap_timeout_s=0.3)
    reader.rollback()
    with connected(migrated_url, "test") as connection, connection, connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO cua_ops.operator_drop (scope, value_sha256, made_at, made_by) VALUES"
            " ('record', 'x', now(), 'me')"
        )

    counting = _Counting(log)
    assert rebuild(counting, migrated_url).swapped

    assert counting.num_read == len(log.records)


def test_while_a_reader_is_waited_for_others_read_and_the_projector_projects(
    migrated_url: str, log: MemoryLog, reader: Connection, events: list[LoggedEvent]
) -> None:
    done = threading.Event()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            rebuild(MemoryReader(log), migrated_url)
        except BaseException as error:  # noqa: BLE001  # shown by the test
            failed.append(error)
        done.set()

    thread = threading.Thread(target=run)
    thread.start()
    _wait_for_finished(migrated_url)
    memory_log(events[-20:], log)
    project(log, migrated_url)
    slowest_s = 0.0
    until = time.monotonic() + 3
    while time.monotonic() < until:
        began = time.monotonic()
        one(migrated_url, "SELECT count(*) FROM cua.turn, cua.step")
        slowest_s = max(slowest_s, time.monotonic() - began)
    assert not done.is_set()
    reader.rollback()
    thread.join(30)

    assert failed == []
    assert slowest_s < 1.0
    assert verify(MemoryReader(log), migrated_url).equal


FINISHED = (
    "SELECT count(*) FROM pg_namespace WHERE obj_description(oid, 'pg_namespace') LIKE"
    " '%\"finished\": true%'"
)


def _wait_for_finished(url: str) -> None:
    deadline = time.monotonic() + 30
    while not one(url, FINISHED):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_something_made_while_a_reader_is_waited_for_is_carried_or_named(
    migrated_url: str, log: MemoryLog, reader: Connection
) -> None:
    with pytest.raises(LimitExceededError):
        rebuild(MemoryReader(log), migrated_url, swap_timeout_s=0.3)
    with connected(migrated_url, "test") as connection, connection, connection.cursor() as cursor:
        cursor.execute("CREATE MATERIALIZED VIEW public.late AS SELECT id FROM cua.turn")
    reader.rollback()

    with pytest.raises(CuaProjectError, match=r"materialized view public\.late"):
        rebuild(MemoryReader(log), migrated_url)

    with connected(migrated_url, "test") as connection, connection, connection.cursor() as cursor:
        cursor.execute("DROP MATERIALIZED VIEW public.late; CREATE VIEW late AS TABLE cua.turn")
    counting = _Counting(log)
    assert rebuild(counting, migrated_url).swapped
    assert counting.num_read == 0
    assert one(migrated_url, "SELECT count(*) FROM late") == one(
        migrated_url, "SELECT count(*) FROM cua.turn"
    )


def test_operators_who_give_up_records_during_a_replay_are_honoured_by_the_next(
    migrated_url: str, log: MemoryLog
) -> None:
    class Dropping(MemoryReader):
        """An operator decides while the log is read."""

        def seek(self, positions: Mapping[TopicPartition, int]) -> None:
            super().seek(positions)
            with connected(migrated_url, "operator") as other, other, other.cursor() as cursor:
                cursor.execute(
                    "INSERT INTO cua_ops.operator_drop (scope, value_sha256, made_at, made_by)"
                    " SELECT 'record', 'y', now(), 'me' WHERE NOT EXISTS (SELECT FROM"
                    " cua_ops.operator_drop)"
                )

    with pytest.raises(CuaProjectError, match="an operator gave up records while the log was"):
        rebuild(Dropping(log), migrated_url)

    assert one(migrated_url, "SELECT count(*) FROM pg_namespace WHERE nspname ~ '^cua_re'") == 0
    assert rebuild(MemoryReader(log), migrated_url).swapped


def test_a_swap_whose_session_the_server_ends_changes_nothing(
    migrated_url: str, log: MemoryLog
) -> None:
    with side_schema(migrated_url, "rebuild") as schema:
        finish_tables(migrated_url, schema, with_views=False)
        with connected(migrated_url, "swap") as connection:
            end = f"SELECT pg_terminate_backend({connection.info.backend_pid}, 5000)"

            def end_session(_: Positions) -> None:
                one(migrated_url, end)

            with pytest.raises(UnreachableError, match="the database ended the swap's session"):
                swap(connection, schema, end_session, Patience(1))

    assert verify(MemoryReader(log), migrated_url).equal


def test_a_swap_that_is_stopped_while_readers_wait_for_it_is_given_up_by_the_server_soon(
    migrated_url: str,
) -> None:
    with connected(migrated_url, "swap") as connection, connection.cursor() as cursor:
        lock_tables(cursor, ["turn"], [])
        cursor.execute("SHOW idle_in_transaction_session_timeout")
        assert cursor.fetchone() == ("5s",)

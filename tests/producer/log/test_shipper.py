"""The shipper against a scripted target: every failure at every place, without a broker."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from filelock import FileLock

from producer.errors import LogBrokenError, UnreachableError
from producer.log.blob_uploads import NoLog
from producer.log.local import LocalLog
from producer.log.shipper import READ_RECORDS, Shipper
from producer.log.spool import Spool
from producer.log.writer import Coordinates, Record
from tests.support.eventually import eventually

GONE = UnreachableError("gone")


class ScriptedTarget(NoLog):
    """Takes what it is given, or fails; each `append` uses up one entry of the script."""

    def __init__(self) -> None:
        self.log_id = "scripted"
        self.script: list[str] = []
        self.taken: list[bytes] = []
        self.calls: list[int] = []
        self.connections = 0

    def connect(self) -> "ScriptedTarget":
        self.connections += 1
        return self

    def append(self, records: Sequence[Record]) -> list[Coordinates]:
        how = self.script.pop(0) if self.script else "take"
        self.calls.append(len(records))
        share = {"take": 1.0, "lose the acknowledgement": 1.0, "take half": 0.5, "refuse": 0.0}[how]
        self.taken += [record.value for record in records[: int(share * len(records))]]
        if how != "take":
            raise GONE
        return []

    def close(self) -> None:
        pass


@pytest.fixture
def log(tmp_path: Path) -> Iterator[LocalLog]:
    log = LocalLog(tmp_path / "log.sqlite3", topics=["cua.rollouts"])
    yield log
    log.close()


def record(number: int) -> Record:
    return Record("cua.rollouts", f"rollout/{number % 3}", str(number).encode())


def shipped(log: LocalLog) -> Callable[[], bool]:
    def is_shipped() -> bool:
        with closing(Spool(log.path)) as spool:
            return spool.cursor("scripted") == spool.end()

    return is_shipped


def ship_all(log: LocalLog, connect: Callable[[], ScriptedTarget]) -> None:
    shipper = Shipper(log.path, connect)
    eventually(shipped(log))
    assert shipper.stop(5)


def without_duplicates(values: list[bytes]) -> list[bytes]:
    return list(dict.fromkeys(values))


@pytest.mark.parametrize(
    "script",
    [
        [],
        ["refuse"],
        ["lose the acknowledgement"],
        ["take half"],
        ["take half", "refuse", "lose the acknowledgement", "take half"],
    ],
)
def test_whatever_fails_each_stream_arrives_whole_and_in_order_with_one_warning_per_outage(
    log: LocalLog, script: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    target = ScriptedTarget()
    target.script = list(script)
    log.append([record(number) for number in range(30)])
    ship_all(log, target.connect)
    assert without_duplicates(target.taken) == [str(number).encode() for number in range(30)]
    # After a duplicate comes everything that followed it: no stream ever skips a record.
    for before, after in zip(target.taken, target.taken[1:], strict=False):
        assert int(after) <= int(before) + 1
    assert len(caplog.messages) == (2 if script else 0)
    if script:
        assert "kept on this disk" in caplog.messages[0]
        assert "reachable again" in caplog.messages[1]


def test_after_a_long_outage_records_are_sent_in_bounded_requests(log: LocalLog) -> None:
    target = ScriptedTarget()
    log.append([record(number) for number in range(2 * READ_RECORDS + 10)])
    ship_all(log, target.connect)
    assert target.calls == [READ_RECORDS, READ_RECORDS, 10]


def test_a_second_shipper_waits_until_the_first_is_gone(log: LocalLog) -> None:
    target = ScriptedTarget()
    with FileLock(log.path.with_name("shipper.lock")):
        shipper = Shipper(log.path, target.connect)
        log.append([record(0)])
        shipper.notify()
        time.sleep(0.3)
        assert target.connections == 0
    eventually(shipped(log))
    assert target.taken == [b"0"]
    shipper.stop(5)


def test_what_one_shipper_shipped_the_next_does_not_send_again(log: LocalLog) -> None:
    target = ScriptedTarget()
    for number in range(2):
        log.append([record(number)])
        ship_all(log, target.connect)
    assert target.taken == [b"0", b"1"]


def test_shipped_records_are_pruned_after_their_time_and_offsets_go_on(log: LocalLog) -> None:
    target = ScriptedTarget()
    log.append([record(0), record(3)])
    shipper = Shipper(log.path, target.connect, keep=timedelta(0))
    eventually(lambda: list(log.read_streams("cua.rollouts", ["rollout/0"], {})) == [])
    shipper.stop(5)
    assert target.taken == [b"0", b"3"]
    assert [at.offset for at in log.append([record(6)])] == [2]


def test_an_unshipped_record_is_never_pruned(log: LocalLog) -> None:
    log.append([record(0)])
    spool = Spool(log.path)
    spool.move("scripted", 1)
    assert spool.prune("scripted", timedelta(0), spool_now()) == 0
    spool.move("scripted", 2)
    assert spool.prune("scripted", timedelta(0), spool_now()) == 1
    spool.close()


def test_the_file_shrinks_once_what_was_shipped_is_pruned(log: LocalLog) -> None:
    size = 1 << 20
    log.append([Record("cua.rollouts", f"rollout/{number}", b"x" * size) for number in range(8)])
    with closing(sqlite3.connect(log.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint")
    assert log.path.stat().st_size > 8 * size
    shipper = Shipper(log.path, ScriptedTarget().connect, keep=timedelta(0))
    eventually(lambda: log.path.stat().st_size < size)
    shipper.stop(5)
    log.append([record(0)])
    log.close()
    assert log.path.stat().st_size < size


def test_a_file_that_is_mostly_in_use_is_not_rewritten(log: LocalLog) -> None:
    log.append([Record("cua.rollouts", f"rollout/{number}", b"x" * 65536) for number in range(9)])
    with closing(Spool(log.path)) as spool:
        spool.move("scripted", 5)
        assert spool.prune("scripted", timedelta(0), spool_now()) == 4
        before = log.path.stat().st_size
        spool.shrink()
        assert log.path.stat().st_size == before
        assert len(spool.read(5, 1 << 30, 10, {}).records) == 5


def spool_now() -> datetime:
    return datetime.now(UTC) + timedelta(seconds=1)


def test_an_unexpected_error_is_retried_too(
    log: LocalLog, caplog: pytest.LogCaptureFixture
) -> None:
    target = ScriptedTarget()
    failures = [ValueError("a bug of the client's")]

    def connect() -> ScriptedTarget:
        if failures:
            raise failures.pop()
        return target.connect()

    log.append([record(0)])
    ship_all(log, connect)
    assert target.taken == [b"0"]
    assert "ValueError" in caplog.messages[0]


def test_stopping_leaves_no_thread(log: LocalLog) -> None:
    before = set(threading.enumerate())  # those of earlier tests may end meanwhile
    shipper = Shipper(log.path, ScriptedTarget().connect)
    assert shipper.stop(5)
    assert set(threading.enumerate()) <= before


def test_a_lock_that_cannot_be_opened_is_reported_and_retried(
    log: LocalLog, caplog: pytest.LogCaptureFixture
) -> None:
    path = log.path.with_name("shipper.lock")
    path.mkdir()
    log.append([record(0)])
    target = ScriptedTarget()
    shipper = Shipper(log.path, target.connect)
    eventually(lambda: caplog.messages)
    assert shipper.is_alive
    path.rmdir()
    eventually(shipped(log))
    assert shipper.stop(5)
    assert shipper.problem is None


def test_a_log_that_can_no_longer_be_read_ends_the_thread_and_is_the_problem(
    log: LocalLog, caplog: pytest.LogCaptureFixture
) -> None:
    shipper = Shipper(log.path, ScriptedTarget().connect)
    with closing(sqlite3.connect(log.path)) as other:
        other.execute("DROP TABLE records")
    eventually(lambda: not shipper.is_alive)
    assert isinstance(shipper.problem, LogBrokenError)
    assert len(caplog.messages) == 1
    assert shipper.stop(5)


class HangingTarget(ScriptedTarget):
    """Acknowledges nothing until it is closed, as a KafkaLog whose broker hangs."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked, self.is_closed = threading.Event(), threading.Event()

    def append(self, records: Sequence[Record]) -> list[Coordinates]:  # noqa: ARG002
        self.is_asked.set()
        assert self.is_closed.wait(20)
        raise GONE

    def close(self) -> None:
        self.is_closed.set()


def test_stopping_ends_a_request_without_acknowledgement_and_warns_of_no_outage(
    log: LocalLog, caplog: pytest.LogCaptureFixture
) -> None:
    target = HangingTarget()
    log.append([record(0)])
    shipper = Shipper(log.path, target.connect)
    assert target.is_asked.wait(10)
    assert shipper.stop(2)  # of patience with the request, then with the end of the thread
    assert caplog.messages == []
    assert not shipped(log)()

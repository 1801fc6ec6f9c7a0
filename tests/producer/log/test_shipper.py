"""The shipper against a scripted target: every failure at every place, without a broker."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from producer.errors import UnreachableError
from producer.log.local import LocalLog
from producer.log.lock import FileLock
from producer.log.shipper import CHUNK_RECORDS, Shipper
from producer.log.spool import Spool
from producer.log.writer import Coordinates, Record

GONE = UnreachableError("gone")


class ScriptedTarget:
    """Takes what it is given, or fails as told.

    Each call of `append` uses up one entry of the script.
    """

    def __init__(self) -> None:
        self.script: list[str] = []
        self.taken: list[bytes] = []
        self.calls: list[int] = []
        self.connections = 0

    log_id = "scripted"

    def connect(self) -> "ScriptedTarget":
        self.connections += 1
        return self

    def append(self, records: Sequence[Record]) -> list[Coordinates]:
        how = self.script.pop(0) if self.script else "take"
        self.calls.append(len(records))
        if how == "take":
            self.taken += [record.value for record in records]
        elif how == "lose the acknowledgement":
            self.taken += [record.value for record in records]
            raise GONE
        elif how == "take half":
            self.taken += [record.value for record in records[: len(records) // 2]]
            raise GONE
        else:
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


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 15
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def shipped(log: LocalLog) -> Callable[[], bool]:
    def is_shipped() -> bool:
        spool = Spool(log.path)
        try:
            return spool.cursor("scripted") == spool.end()
        finally:
            spool.close()

    return is_shipped


def without_repetitions(values: list[bytes]) -> list[bytes]:
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
def test_whatever_fails_each_stream_arrives_whole_and_in_order_and_the_trouble_is_said_once(
    log: LocalLog, script: list[str]
) -> None:
    target, said = ScriptedTarget(), list[str]()
    target.script = list(script)
    log.append([record(number) for number in range(30)])
    shipper = Shipper(log.path, target.connect, say=said.append)
    until(shipped(log))
    assert shipper.stop(5)
    assert without_repetitions(target.taken) == [str(number).encode() for number in range(30)]
    # After a repetition comes everything that followed it: no stream ever steps over a record.
    for before, after in zip(target.taken, target.taken[1:], strict=False):
        assert int(after) <= int(before) + 1
    assert len(said) == (2 if script else 0)
    if script:
        assert "Nothing is lost" in said[0]
        assert "back" in said[1]


def test_a_long_outage_is_made_up_for_in_bounded_chunks(log: LocalLog) -> None:
    target = ScriptedTarget()
    log.append([record(number) for number in range(2 * CHUNK_RECORDS + 10)])
    shipper = Shipper(log.path, target.connect, say=lambda _: None)
    until(shipped(log))
    shipper.stop(5)
    assert target.calls == [CHUNK_RECORDS, CHUNK_RECORDS, 10]


def test_a_second_shipper_waits_until_the_first_is_gone(log: LocalLog) -> None:
    target = ScriptedTarget()
    with FileLock(log.path.with_name("shipper.lock")):
        shipper = Shipper(log.path, target.connect, say=lambda _: None)
        log.append([record(0)])
        shipper.poke()
        time.sleep(0.3)
        assert target.connections == 0
    until(shipped(log))
    assert target.taken == [b"0"]
    shipper.stop(5)


def test_what_one_shipper_shipped_the_next_does_not_send_again(log: LocalLog) -> None:
    target = ScriptedTarget()
    for number in range(2):
        log.append([record(number)])
        shipper = Shipper(log.path, target.connect, say=lambda _: None)
        until(shipped(log))
        shipper.stop(5)
    assert target.taken == [b"0", b"1"]


def test_shipped_records_are_pruned_after_their_time_and_offsets_go_on(log: LocalLog) -> None:
    target = ScriptedTarget()
    log.append([record(0), record(3)])
    shipper = Shipper(log.path, target.connect, say=lambda _: None, keep=timedelta(0))
    until(lambda: list(log.read_stream("cua.rollouts", "rollout/0", {})) == [])
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


def spool_now() -> datetime:
    return datetime.now(UTC) + timedelta(seconds=1)


def test_an_error_that_nobody_foresaw_is_tried_again_too(log: LocalLog) -> None:
    target, said = ScriptedTarget(), list[str]()
    failures = [ValueError("a bug of the client's")]

    def connect() -> ScriptedTarget:
        if failures:
            raise failures.pop()
        return target.connect()

    log.append([record(0)])
    shipper = Shipper(log.path, connect, say=said.append)
    until(shipped(log))
    shipper.stop(5)
    assert target.taken == [b"0"]
    assert "ValueError" in said[0]


def test_stopping_leaves_no_thread(log: LocalLog) -> None:
    before = threading.active_count()
    shipper = Shipper(log.path, ScriptedTarget().connect, say=lambda _: None)
    assert shipper.stop(5)
    assert threading.active_count() == before

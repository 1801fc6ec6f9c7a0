"""A process that is stopped (Ctrl-Z, SIGSTOP) while it holds a lock of the home blocks nobody."""

import logging
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from producer.emit import Emitter
from producer.errors import StopRequestedError
from producer.log.event_log import EventLog
from producer.log.local import LocalLog
from producer.log.shipper_lease import ShipperLease
from producer.log.spool import Spool
from producer.log.writer import Record
from producer.training.run import run as run_training
from tests.support.emitting import REQUESTED, new_subject
from tests.support.eventually import eventually
from tests.support.ports import free_port
from tests.support.reading import installation_at, read_all
from tests.support.small_run import small
from tests.support.stopped_process import stopped_process

RECORD = Record("cua.rollouts", "rollout/a", b"1")
REMOTE = "memory://blobs"
"""Shipping to this store moves the cursor and needs no server."""


def test_an_emitter_waits_for_a_stopped_writer_names_it_and_goes_on_when_it_does(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    installation = installation_at(tmp_path)
    subject = new_subject()
    with (
        Emitter.open(installation) as emitter,
        stopped_process("write", {"CUA_HOME": str(tmp_path)}) as neighbour,
    ):
        began = time.monotonic()
        acknowledgement = emitter.stream(subject).emit(REQUESTED)
        assert time.monotonic() - began < 5  # one that waited would wait for ever
        eventually(lambda: caplog.messages)
        (warning,) = caplog.messages
        assert f"process {neighbour.pid}" in warning
        assert "which is stopped" in warning
        assert f"kill -CONT {neighbour.pid}" in warning
        assert not acknowledgement.done
        os.kill(neighbour.pid, signal.SIGCONT)
        acknowledgement.wait(20)
        assert neighbour.wait(10) == 0
    assert len(caplog.messages) == 2
    assert "free again" in caplog.messages[1]
    assert [record.key for record in read_all(installation)] == [subject]


def test_a_process_that_starts_beside_a_stopped_writer_waits_for_it_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    installation = installation_at(tmp_path)
    EventLog.open(installation).close(0)
    with stopped_process("write", {"CUA_HOME": str(tmp_path)}) as neighbour:
        opened: list[EventLog] = []
        starting = threading.Thread(target=lambda: opened.append(EventLog.open(installation)))
        starting.start()
        eventually(lambda: f"process {neighbour.pid}" in caplog.text)
        os.kill(neighbour.pid, signal.SIGCONT)
        starting.join(20)
    assert len(opened) == 1
    opened[0].local.append([RECORD])
    opened[0].close(1)


def test_whoever_is_told_to_stop_while_it_starts_beside_a_stopped_writer_stops(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Else `systemctl stop` and Ctrl-C wait for the neighbour."""
    installation = installation_at(tmp_path)
    LocalLog(installation.local_log_path).close()
    stop = threading.Event()
    ended: list[Exception] = []

    def run() -> None:
        try:
            run_training(small(), installation=installation, stop=stop)
        except StopRequestedError as error:
            ended.append(error)

    with stopped_process("write", {"CUA_HOME": str(tmp_path)}):
        starting = threading.Thread(target=run, daemon=True)
        starting.start()
        eventually(lambda: "which is stopped" in caplog.text)
        stop.set()
        starting.join(5)
        assert ended


def test_a_wait_for_the_write_lock_has_no_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Failing after a minute would end a run because its neighbour was stopped."""
    monkeypatch.setattr("producer.log.local_file.ATTEMPT_S", 0.01)
    log = LocalLog(tmp_path / "log" / "log.sqlite3", topics=["cua.rollouts"])
    with stopped_process("write", {"CUA_HOME": str(tmp_path)}) as neighbour:
        done = threading.Event()

        def append() -> None:
            log.append([RECORD])
            done.set()

        threading.Thread(target=append, daemon=True).start()
        assert not done.wait(1.0)  # 100 times what SQLite itself waits here
        os.kill(neighbour.pid, signal.SIGCONT)
        assert done.wait(20)
    log.close()


def test_whoever_was_stopped_while_creating_the_log_holds_up_nobody(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    with (
        stopped_process(tmp_path / "log" / "create.lock", {}),
        Emitter.open(installation_at(tmp_path)) as emitter,
    ):
        emitter.stream(new_subject()).emit(REQUESTED).wait(10)


def test_shipping_passes_from_a_stopped_process_to_a_living_one_and_does_not_come_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    installation = replace(installation_at(tmp_path), blobs_url=REMOTE)
    caplog.set_level(logging.WARNING)
    environ = {"CUA_HOME": str(tmp_path), "CUA_BLOBS": REMOTE}
    with stopped_process("shipper", environ) as neighbour:
        log = EventLog.open(installation)
        log.local.append([RECORD])
        eventually(lambda: log.num_unshipped() == 0, 20)
        assert f"process {neighbour.pid} " in caplog.text
        os.kill(neighbour.pid, signal.SIGCONT)
        assert neighbour.wait(20) == 0
        # The neighbour woke up beside its successor, which ships on, with the free lock now.
        log.local.append([RECORD])
        eventually(lambda: log.num_unshipped() == 0, 5)
        assert log.close(5) == 0


def test_a_shipper_that_was_replaced_notices_and_the_free_lock_of_a_dead_one_is_taken_at_once(
    tmp_path: Path,
) -> None:
    stale_s = 2.0
    stopped = ShipperLease(tmp_path, beat_s=1000, stale_s=stale_s)  # never beats
    living = ShipperLease(tmp_path, beat_s=0.05, stale_s=stale_s)
    third = ShipperLease(tmp_path, beat_s=0.05, stale_s=stale_s)
    assert stopped.acquire()
    assert stopped.is_ours()
    assert not living.acquire()
    eventually(living.acquire, 20)
    assert not stopped.is_ours()
    assert living.is_ours()
    # It has the lock still, but a living process has the lease.
    until_s = time.monotonic() + 1.5 * stale_s
    while time.monotonic() < until_s:
        assert not stopped.acquire()
        assert not third.acquire()
        time.sleep(0.02)
    stopped.release()
    assert living.is_ours()
    living.release()
    began = time.monotonic()
    assert third.acquire()
    assert time.monotonic() - began < stale_s / 2
    third.release()
    third.release()


def test_the_cursor_never_moves_back(tmp_path: Path) -> None:
    """A shipper that wakes up behind its successor records an older position."""
    log = LocalLog(tmp_path / "log.sqlite3", topics=["cua.rollouts"])
    log.append([RECORD] * 3)
    spool = Spool(log.path)
    spool.move("target", 4)
    spool.move("target", 2)
    assert spool.cursor("target") == 4
    spool.close()
    log.close()


def test_whoever_closes_beside_a_stopped_writer_is_not_held_up_by_counting_what_is_left(
    tmp_path: Path,
) -> None:
    installation = replace(
        installation_at(tmp_path), kafka_bootstrap_servers=f"127.0.0.1:{free_port()}"
    )
    log = EventLog.open(installation)
    log.local.append([RECORD])
    with stopped_process("write", {"CUA_HOME": str(tmp_path)}):
        began = time.monotonic()
        assert log.close(0.2) == 1
        assert time.monotonic() - began < 10

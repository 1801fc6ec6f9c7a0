"""A process that is stopped (SIGSTOP, its host gone) with locks in its hands stops no other one.

Real processes, stopped by real signals at a moment that a trigger in the database prolongs.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from consumers.database.connection import connected
from consumers.errors import LimitExceededError
from consumers.log.local import LocalLogReader
from consumers.projection.loop import ProjectionLoop
from consumers.status import read_status
from schemas.installation import read_installation
from tests.reference_fold.comparison import database_tables, differences, plain_tables
from tests.reference_fold.histories import LoggedEvent
from tests.reference_fold.reference import fold
from tests.support.eventually import eventually
from tests.support.forked_command import run_command
from tests.support.logs import logged_events, memory_log, write_local_log
from tests.support.memory_log import MemoryReader
from tests.support.paths import ROOT
from tests.support.postgres import execute
from tests.support.projectors import (
    DEADLINE_S,
    SLOW_TRIGGER,
    holder,
    no_longer_sleeping,
    projector,
    sleeping,
)

pytestmark = [pytest.mark.services, pytest.mark.slow]
REPLACED_WITHIN_S = 20.0
"""As docs/operating.md promises, of a projector that is there: its start is not counted."""
STARTED_WITHIN_S = 25.0
"""What a busy machine may need for it besides."""


@pytest.fixture
def events() -> list[LoggedEvent]:
    return logged_events("a", "b", "c")


@pytest.mark.parametrize("point", ["idle", "commit", "copy", "fill"])
def test_a_stopped_projector_is_replaced_and_waits_politely_when_it_wakes(
    migrated_url: str, events: list[LoggedEvent], tmp_path: Path, point: str
) -> None:
    log = read_installation(os.environ).local_log_path
    write_local_log(log, events[:300])
    reader = LocalLogReader(log, topic_prefix="cua.")

    def is_current() -> bool:
        return read_status(reader, migrated_url).lag_events == 0

    application = "cua-project fill cua" if point == "fill" else "cua-project run"
    # The last statement of a transaction ends in a COPY that waits for its client, or before one.
    table = {"copy": "cua.rollout", "fill": "cua.turn"}.get(point, "cua.reader_position")
    if point != "idle":
        execute(migrated_url, SLOW_TRIGGER.format(table=table))
    how = "parallel" if point == "fill" else "single"
    with projector(migrated_url, tmp_path / "first.log", how) as first:
        if point == "idle":
            eventually(is_current)
            first.signal(signal.SIGSTOP)
        else:
            eventually(lambda: sleeping(migrated_url, application))
            first.signal(signal.SIGSTOP)
            no_longer_sleeping(migrated_url, application)
        with projector(migrated_url, tmp_path / "second.log") as second:
            write_local_log(log, events[300:400])
            eventually(second.has_started)
            eventually(is_current, REPLACED_WITHIN_S)
            assert holder(migrated_url) == str(second.pid)
            assert second.says("took the lease over from process")

            first.signal(signal.SIGCONT)
            write_local_log(log, events[400:])
            eventually(lambda: first.says("another projector is running"))
            eventually(is_current)
            assert holder(migrated_url) == str(second.pid)
    reference = fold((event.subject, event.value) for event in events)
    assert differences(plain_tables(reference.tables), database_tables(migrated_url)) == []
    reader.close()


def test_a_lock_of_a_user_is_waited_for_by_name(
    migrated_url: str, events: list[LoggedEvent], caplog: pytest.LogCaptureFixture
) -> None:
    log = memory_log(events)
    user = connected(migrated_url, "of a user")
    with user as locking, locking.cursor() as cursor:
        cursor.execute("LOCK TABLE cua.rollout IN SHARE MODE")
        stop = threading.Event()
        worker = threading.Thread(
            target=ProjectionLoop(MemoryReader(log), migrated_url).run_forever, args=(stop,)
        )
        worker.start()
        try:
            pid = locking.info.backend_pid
            eventually(lambda: any(f"waiting for process {pid} (" in m for m in caplog.messages))
            assert any("which has locked cua.rollout" in m for m in caplog.messages)
            # Longer than any lock_timeout and than the lease lasts: it neither dies nor loses it.
            time.sleep(13)
            assert worker.is_alive()
            locking.rollback()
            eventually(lambda: read_status(MemoryReader(log), migrated_url).lag_events == 0)
        finally:
            stop.set()
            worker.join(DEADLINE_S)
    assert not any("another projector" in message for message in caplog.messages)


def test_once_gives_up_on_a_lock_of_a_user_and_names_it(
    migrated_url: str, events: list[LoggedEvent]
) -> None:
    with connected(migrated_url, "of a user") as locking, locking.cursor() as cursor:
        cursor.execute("LOCK TABLE cua.rollout IN SHARE MODE")
        pid = locking.info.backend_pid
        with pytest.raises(LimitExceededError, match=rf"gave up after 4 s: .* process {pid} \("):
            ProjectionLoop(MemoryReader(memory_log(events)), migrated_url).run_once(limit_s=4)


def test_once_stops_at_once_while_it_waits_for_a_lock(
    migrated_url: str, events: list[LoggedEvent], caplog: pytest.LogCaptureFixture
) -> None:
    stop = threading.Event()
    with connected(migrated_url, "of a user") as locking, locking.cursor() as cursor:
        cursor.execute("LOCK TABLE cua.rollout IN SHARE MODE")
        worker = threading.Thread(
            target=ProjectionLoop(MemoryReader(memory_log(events)), migrated_url).run_once,
            args=(60.0, stop),
        )
        worker.start()
        eventually(lambda: any("waiting for process" in message for message in caplog.messages))
        stop.set()
        worker.join(5)
        assert not worker.is_alive()


def unknown_heartbeat(events: list[LoggedEvent]) -> list[LoggedEvent]:
    """The history with a record that parks the rest of its training."""
    index = next(n for n, one in enumerate(events) if b"heartbeat_sent" in one.value)
    stream, value = events[index]
    spoilt = value.replace(b"heartbeat_sent", b"dreamt")
    return [*events[:index], LoggedEvent(stream, spoilt), *events[index + 1 :]]


COMMAND = (sys.executable, "-m", "consumers")


def test_a_stopped_retry_keeps_neither_a_projector_nor_another_retry_waiting(
    migrated_url: str, events: list[LoggedEvent], tmp_path: Path
) -> None:
    log = read_installation(os.environ).local_log_path
    write_local_log(log, unknown_heartbeat(events[:300]))
    reader = LocalLogReader(log, topic_prefix="cua.")
    ProjectionLoop(reader, migrated_url).run_once()
    execute(migrated_url, SLOW_TRIGGER.format(table="cua.stream_position"))
    environ = os.environ | {"DATABASE_URL": migrated_url}
    with (tmp_path / "retry.log").open("wb") as out:
        stopped = subprocess.Popen(
            [*COMMAND, "parked", "retry"], env=environ, cwd=ROOT, stderr=out, stdout=out
        )
    try:
        eventually(lambda: sleeping(migrated_url, "cua-project parked"))
        stopped.send_signal(signal.SIGSTOP)
        no_longer_sleeping(migrated_url, "cua-project parked")
        write_local_log(log, events[300:])

        ProjectionLoop(reader, migrated_url).run_once(limit_s=REPLACED_WITHIN_S + STARTED_WITHIN_S)

        assert read_status(reader, migrated_url).lag_events == 0
        again = run_command(
            "consumers", "parked", "retry", "--json", environ=environ, timeout_s=DEADLINE_S
        )
        assert again.returncode == 0, again.stderr
    finally:
        stopped.kill()
        stopped.wait(10)
        reader.close()


@pytest.mark.parametrize("what", ["retry", "once"])
def test_what_needs_the_tables_does_not_wait_for_a_stopped_projector_for_long(
    migrated_url: str, events: list[LoggedEvent], tmp_path: Path, what: str
) -> None:
    log = read_installation(os.environ).local_log_path
    write_local_log(log, unknown_heartbeat(events[:200]))
    reader = LocalLogReader(log, topic_prefix="cua.")
    ProjectionLoop(reader, migrated_url).run_once()
    execute(migrated_url, SLOW_TRIGGER.format(table="cua.reader_position"))
    with projector(migrated_url, tmp_path / "first.log") as first:
        write_local_log(log, events[200:300])
        eventually(lambda: sleeping(migrated_url, "cua-project run"))
        first.signal(signal.SIGSTOP)
        no_longer_sleeping(migrated_url, "cua-project run")
        arguments = ("parked", "retry") if what == "retry" else ("run", "--once")
        began = time.monotonic()
        environ = os.environ | {"DATABASE_URL": migrated_url}
        done = run_command("consumers", *arguments, "--json", environ=environ, timeout_s=DEADLINE_S)
        assert done.returncode == 0, done.stderr
        assert time.monotonic() - began < REPLACED_WITHIN_S + STARTED_WITHIN_S
        assert "waiting for process" in done.stderr
    reader.close()

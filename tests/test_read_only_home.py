"""A home that may only be read: a mounted snapshot, another user's. What only reads works on it."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from producer.log.local import LocalLog
from schemas.installation import read_installation
from tests.reference_fold.histories import Shape
from tests.support.logs import logged_events, write_local_log
from tests.support.read_only import heeding_rights, read_only

SMALL = Shape(steps=1, groups=1, group_size=2, turns=2, has_trouble=False)
EVENTS = logged_events("a", shape=SMALL)
LATER = logged_events("b", shape=SMALL, seed=7)
FORMAT = ("--format", "%k\\n")
DEADLINE_S = 60


@pytest.fixture
def home() -> Path:
    """Of a training that has ended, its log closed."""
    installation = read_installation(os.environ)
    write_local_log(installation.local_log_path, EVENTS)
    assert os.listdir(installation.local_log_path.parent) == ["log.sqlite3"]  # noqa: PTH208
    return installation.home


def call(*words: str) -> subprocess.CompletedProcess[str]:
    """One of the two programs, as a user who may not write there."""
    return subprocess.run(
        heeding_rights([sys.executable, "-m", *words]),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def tailed() -> list[str]:
    """Every event's stream, of those that the log has."""
    done = call("consumers", "tail", *FORMAT)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_what_only_reads_reads_a_closed_log(home: Path, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    run = home / "runs" / "nothing"
    run.mkdir(parents=True)
    with read_only(home):
        assert tailed() == [event.subject for event in EVENTS]
        archived = call("consumers", "archive", str(archive), "--json")
        listed = call("producer", "trainings", "list")
        renamed = call("producer", "trainings", "rename", "a", "b")

    assert (archived.returncode, f'"events": {len(EVENTS)}' in archived.stdout) == (0, True)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert (renamed.returncode, "room" in renamed.stderr) == (1, False)
    assert f"no permission to write {home / 'log'}; correct its rights" in renamed.stderr
    assert os.listdir(home / "log") == ["log.sqlite3"]  # noqa: PTH208


@pytest.fixture
def open_log(home: Path) -> Iterator[LocalLog]:
    """The same log, with a record in the WAL of a process that has it open."""
    log = LocalLog(read_installation(os.environ).local_log_path)
    write_local_log(home / "log" / "log.sqlite3", LATER)
    yield log
    log.close()


def test_a_log_that_another_user_writes_is_read_to_its_last_commit(
    home: Path, open_log: LocalLog
) -> None:
    with read_only(home):
        assert tailed() == [event.subject for event in EVENTS + LATER]
    assert open_log.log_id


def test_a_snapshot_with_its_wal_is_read_whole(home: Path, open_log: LocalLog) -> None:
    assert open_log.log_id
    shutil.copytree(home / "log", home / "copied")
    open_log.close()
    shutil.rmtree(home / "log")
    (home / "copied").rename(home / "log")
    with read_only(home):
        assert tailed() == [event.subject for event in EVENTS + LATER]


def test_a_wal_without_its_shared_memory_is_refused_with_what_to_do(
    home: Path, open_log: LocalLog
) -> None:
    assert open_log.log_id
    shutil.copytree(home / "log", home / "copied")
    open_log.close()
    shutil.rmtree(home / "log")
    (home / "copied").rename(home / "log")
    (home / "log" / "log.sqlite3-shm").unlink()
    with read_only(home):
        done = call("consumers", "tail")

    assert (done.returncode, done.stdout) == (5, "")
    assert "has a WAL without its -shm file; copy the folder to where you can write" in done.stderr


def test_a_reader_of_a_closed_log_sees_what_is_written_later(home: Path) -> None:
    path = home / "log" / "log.sqlite3"
    # To the folder alone: the writer here is another user.
    (home / "log").chmod(0o555)
    follow = subprocess.Popen(
        heeding_rights([sys.executable, "-m", "consumers", "tail", "-f", "-o", "start", *FORMAT]),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert follow.stdout is not None
    limit = threading.Timer(DEADLINE_S, follow.kill)
    limit.start()
    try:
        seen = [follow.stdout.readline().strip() for _ in EVENTS]
        (home / "log").chmod(0o755)
        for item in LATER:
            # Each opens the file, writes, and closes it: the WAL comes and goes.
            write_local_log(path, [item])
        seen += [follow.stdout.readline().strip() for _ in LATER]
    finally:
        limit.cancel()
        follow.terminate()
        rest, _ = follow.communicate(timeout=DEADLINE_S)
    assert seen + rest.splitlines() == [event.subject for event in EVENTS + LATER]

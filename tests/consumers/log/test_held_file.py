"""A local log that other processes hold, or keep opening and closing."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from consumers.errors import UnreachableError
from consumers.log import local_file
from consumers.log.local_file import LocalLogFile
from schemas import readable_log
from schemas.readable_log import PROTOCOL_ATTEMPTS
from tests.reference_fold.histories import Shape
from tests.support.logs import logged_events, write_local_log


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.sqlite3"
    write_local_log(path, logged_events("a", shape=Shape(steps=1, groups=1, group_size=1, turns=1)))
    return path


@pytest.mark.parametrize("num_lost", [1, PROTOCOL_ATTEMPTS - 1, PROTOCOL_ATTEMPTS])
def test_a_lost_race_for_the_wal_is_run_again_a_few_times(
    log: Path, monkeypatch: pytest.MonkeyPatch, num_lost: int
) -> None:
    lost = list(range(num_lost))
    connect = readable_log._connect

    def losing(*given: Any) -> sqlite3.Connection:
        if lost:
            lost.pop()
            error = sqlite3.OperationalError("locking protocol")
            error.sqlite_errorcode = sqlite3.SQLITE_PROTOCOL
            raise error
        return connect(*given)

    monkeypatch.setattr(readable_log, "_connect", losing)
    if num_lost < PROTOCOL_ATTEMPTS:
        assert LocalLogFile(log).log_id
    else:
        with pytest.raises(UnreachableError, match="locking protocol; another process has it"):
            _ = LocalLogFile(log).log_id


def test_a_log_that_a_process_holds_whole_is_not_said_to_be_broken(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is paused while it makes or recovers the log holds it so."""
    monkeypatch.setattr(local_file, "BUSY_TIMEOUT_S", 0.01)
    with closing(sqlite3.connect(log, isolation_level=None)) as holder:
        holder.execute("PRAGMA locking_mode = EXCLUSIVE")
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(UnreachableError, match="locked; another process has it locked: stop"):
            _ = LocalLogFile(log).log_id
    assert LocalLogFile(log).log_id

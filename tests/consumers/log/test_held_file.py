"""A local log that other processes keep opening and closing is opened again."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from consumers.errors import UnreachableError
from consumers.log import local_file
from consumers.log.local_file import PROTOCOL_ATTEMPTS, LocalLogFile
from schemas.readable_log import ReadableLog, open_to_read
from tests.reference_fold.histories import Shape
from tests.support.logs import logged_events, write_local_log


class LosingRaces:
    """A connection that SQLite refuses after losing the race for the WAL's locks."""

    def execute(self, _sql: str) -> None:
        error = sqlite3.OperationalError("locking protocol")
        error.sqlite_errorcode = sqlite3.SQLITE_PROTOCOL
        raise error

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("num_lost", [1, PROTOCOL_ATTEMPTS - 1, PROTOCOL_ATTEMPTS])
def test_a_lost_race_for_the_wal_is_run_again_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num_lost: int
) -> None:
    path = tmp_path / "log.sqlite3"
    write_local_log(path, logged_events("a", shape=Shape(steps=1, groups=1, group_size=1, turns=1)))
    lost: list[Any] = [LosingRaces() for _ in range(num_lost)]

    def opened(path: Path, timeout_s: float) -> ReadableLog:
        return ReadableLog(lost.pop(), path, None) if lost else open_to_read(path, timeout_s)

    monkeypatch.setattr(local_file, "open_to_read", opened)
    if num_lost < PROTOCOL_ATTEMPTS:
        assert LocalLogFile(path).log_id
    else:
        with pytest.raises(UnreachableError, match="locking protocol"):
            _ = LocalLogFile(path).log_id

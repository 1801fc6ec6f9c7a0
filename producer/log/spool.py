"""The local log seen as a spool: what of it lies in another log already, and what is left.

Knows no Kafka and starts no thread.

A cursor per target log names the next position to ship; it moves only after the target's
acknowledgement.
"""

import sqlite3
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from producer.log.local_file import broken, open_for_writing
from producer.log.writer import Record
from schemas.local_log import to_microseconds

PRUNE_ROWS = 2000
"""Deleted in one transaction: milliseconds, so that the emitter's commits hardly wait."""


class SpooledRecords(NamedTuple):
    """Some records in the order of appending."""

    records: list[Record]
    next_position: int
    """Position after them."""


class Spool:
    """One connection to a local log, for reading what is to be shipped and moving cursors.

    For one thread at a time.

    LogBrokenError from everything when the file cannot be used. `close` twice is once.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = open_for_writing(path)
        # A cursor that a power cut forgets means records shipped twice, which readers know by their
        # sequence: no sync for it.
        self._connection.execute("PRAGMA synchronous = NORMAL")

    def end(self) -> int:
        """Position after the last record."""
        return self._number("SELECT next_position FROM head")

    def cursor(self, target: str) -> int:
        """Position of the next record to ship to this log; 1 when none was."""
        return self._number("SELECT max(next_position) FROM cursors WHERE target = ?", target) or 1

    def furthest(self) -> int:
        """The furthest cursor of any target; 1 when nothing was ever shipped."""
        return self._number("SELECT max(next_position) FROM cursors") or 1

    def read(self, position: int, max_bytes: int, max_records: int) -> SpooledRecords:
        """Records from `position` on, up to a bound (one at least when there is one)."""
        records: list[Record] = []
        size = 0
        try:
            rows = self._connection.execute(
                "SELECT records.position, topic, key, value FROM records JOIN partitions ON"
                " partitions.id = partition_id WHERE position >= ? ORDER BY position LIMIT ?",
                (position, max_records),
            )
            for at, topic, key, value in rows:
                records.append(Record(topic, key, value))
                position = at + 1
                size += len(value)
                if size >= max_bytes:
                    break
            rows.close()
        except sqlite3.Error as error:
            raise broken(self._path, "cannot be read", error) from error
        return SpooledRecords(records, position)

    def move(self, target: str, next_position: int) -> None:
        """Everything before `next_position` lies in the target."""
        self._change(
            "INSERT INTO cursors VALUES (?, ?) ON CONFLICT DO UPDATE SET next_position ="
            " excluded.next_position",
            target,
            next_position,
        )

    def prune(self, target: str, older_than: timedelta, now: datetime) -> int:
        """Delete what the target has and is older than that, the oldest first.

        How many rows (call again while it is PRUNE_ROWS).
        """
        return self._change(
            "DELETE FROM records WHERE position IN (SELECT position FROM records WHERE position < ?"
            " AND appended_at < ? ORDER BY position LIMIT ?)",
            self.cursor(target),
            to_microseconds(now - older_than),
            PRUNE_ROWS,
        )

    def close(self) -> None:
        """Close the file; twice is once."""
        self._connection.close()

    def _number(self, statement: str, *values: object) -> int:
        try:
            found = self._connection.execute(statement, values).fetchone()[0]
        except sqlite3.Error as error:
            raise broken(self._path, "cannot be read", error) from error
        return 0 if found is None else int(found)

    def _change(self, statement: str, *values: object) -> int:
        try:
            return self._connection.execute(statement, values).rowcount
        except sqlite3.Error as error:
            raise broken(self._path, "can no longer be written", error) from error

"""The local log as a spool: which of its records another log has, and which are left to ship.

A cursor per target log is the next position to ship; it moves only after the target's
acknowledgement. Knows no Kafka and starts no thread.
"""

import sqlite3
import threading
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from producer.log.local_file import broken, open_for_writing
from producer.log.write_lock import when_free
from producer.log.writer import Record
from schemas.local_log import to_microseconds

PRUNE_ROWS = 2000
"""Deleted in one transaction, a few milliseconds: the emitter's commits hardly wait."""


class SpooledRecords(NamedTuple):
    """Consecutive records, in the order of appending."""

    records: list[Record]
    next_position: int
    """Position after them."""


class Spool:
    """A connection to a local log, for reading what is to be shipped and moving cursors.

    For one thread at a time. Every method raises LogBrokenError when the file cannot be used.
    `close` is idempotent.
    """

    def __init__(self, path: Path, stop: threading.Event | None = None) -> None:
        """`stop`: once it is set, a wait for the file's write lock ends in StopRequestedError."""
        self._path = path
        self._stop = stop
        self._connection = open_for_writing(path, stop)
        # No sync: a cursor lost in a power cut means records shipped twice, which readers detect.
        self._connection.execute("PRAGMA synchronous = NORMAL")

    def end(self) -> int:
        """Position after the last record."""
        return self._number("SELECT next_position FROM head")

    def cursor(self, target: str) -> int:
        """Position of the next record to ship to `target`; 1 before the first."""
        return self._number("SELECT max(next_position) FROM cursors WHERE target = ?", target) or 1

    def furthest(self) -> int:
        """The furthest cursor of any target; 1 before the first."""
        return self._number("SELECT max(next_position) FROM cursors") or 1

    def read(self, position: int, max_bytes: int, max_records: int) -> SpooledRecords:
        """Records from `position` on, within the limits but at least one if there is any."""
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
        """Advance the cursor: `target` has everything before `next_position`. Never moves back.

        A shipper that was stopped, replaced and continued may be behind its successor.
        """
        self._change(
            "INSERT INTO cursors VALUES (?, ?) ON CONFLICT DO UPDATE SET next_position ="
            " max(next_position, excluded.next_position)",
            target,
            next_position,
        )

    def prune(self, target: str, older_than: timedelta, now: datetime) -> int:
        """Delete shipped records older than that, oldest first; returns how many.

        Call again while that is PRUNE_ROWS.
        """
        return self._change(
            "DELETE FROM records WHERE position IN (SELECT position FROM records WHERE position < ?"
            " AND appended_at < ? ORDER BY position LIMIT ?)",
            self.cursor(target),
            to_microseconds(now - older_than),
            PRUNE_ROWS,
        )

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _number(self, statement: str, *values: object) -> int:
        try:
            found = self._connection.execute(statement, values).fetchone()[0]
        except sqlite3.Error as error:
            raise broken(self._path, "cannot be read", error) from error
        return 0 if found is None else int(found)

    def _change(self, statement: str, *values: object) -> int:
        try:
            execute = self._connection.execute
            return when_free(self._path, lambda: execute(statement, values), self._stop).rowcount
        except sqlite3.Error as error:
            raise broken(self._path, "can no longer be written", error) from error

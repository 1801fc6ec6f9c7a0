"""The local log as a spool: which of its records another log has, and which are left to ship.

A cursor per target log holds the next position to ship. It moves only after the target's
acknowledgement. A stream whose next record the target refuses is held: the cursor passes it, and
its records stay. Knows no Kafka and starts no thread.
"""

import sqlite3
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from producer.log.local_file import broken, open_for_writing, when_free
from producer.log.writer import Coordinates, Record
from schemas.local_log import HELD_DDL, to_microseconds

PRUNE_ROWS = 2000
"""Records deleted per transaction, which takes a few milliseconds, so that the emitter's commits
hardly wait."""
PAUSE_S = 0.01
KEEP = timedelta(days=7)
"""How long shipped records stay in the file."""
REWRITE_BYTES = 64 << 20
"""Maximum content that is rewritten to shrink the file, which takes half a second, during which
commits wait."""


class SpooledRecords(NamedTuple):
    """Records in the order of appending, without those of held streams."""

    records: list[Record]
    positions: list[int]
    """Position of each record."""
    next_position: int
    """Position after the records."""


class Spool:
    """A connection to a local log, for reading what is to be shipped and for moving cursors.

    For one thread at a time. Every method raises LogBrokenError if the file cannot be used. `close`
    is idempotent.
    """

    def __init__(self, path: Path, stop: threading.Event | None = None) -> None:
        """Once `stop` is set, waiting for the file's write lock raises StopRequestedError."""
        self._path = path
        self._stop = stop
        self._connection = open_for_writing(path, stop)
        # No sync: losing a cursor in a power cut only ships records twice, which readers detect.
        self._connection.execute("PRAGMA synchronous = NORMAL")

    def end(self) -> int:
        """Position after the last record."""
        return self._number("SELECT next_position FROM head")

    def cursor(self, target: str) -> int:
        """Position of the next record to ship to `target`; 1 before the first."""
        return self._number("SELECT max(next_position) FROM cursors WHERE target = ?", target) or 1

    def targets(self) -> list[str]:
        """Every log that records were shipped to, the one with most records first."""
        found = self._all("SELECT target FROM cursors ORDER BY next_position DESC")
        return [str(target) for (target,) in found]

    def num_unshipped(self, target: str) -> int:
        """Number of records that `target` does not have yet, including those of held streams."""
        return self.end() - self.cursor(target) + self.num_held(target)

    def read(
        self, position: int, max_bytes: int, max_records: int, held: Mapping[str, int]
    ) -> SpooledRecords:
        """Records from `position` on, within the limits, but at least one if there is any.

        `held` is the result of `held()`; records that it holds back are left out.
        """
        records: list[Record] = []
        positions: list[int] = []
        size = 0
        with closing(self._rows(position, None, max_records, None)) as rows:
            for at, record in rows:
                position = at + 1
                if held and at >= held.get(record.key, position):
                    continue
                records.append(record)
                positions.append(at)
                size += len(record.value)
                if size >= max_bytes:
                    break
        return SpooledRecords(records, positions, position)

    def held(self, target: str) -> dict[str, int]:
        """Map the key of each stream that this target refuses to its first held position."""
        if not self._has_held():
            return {}
        return dict(self._all("SELECT key, position FROM held WHERE target = ?", target))

    def read_held(self, key: str, position: int, end: int) -> Iterator[tuple[int, Record]]:
        """(position, record) of one stream's records from `position` up to but excluding `end`."""
        while True:
            # Read one at a time, so that no snapshot stays open while sending.
            with closing(self._rows(position, end, 1, key)) as rows:
                found = next(rows, None)
            if found is None:
                return
            yield found
            position = found[0] + 1

    def hold(self, target: str, key: str, position: int) -> None:
        """Stop shipping this stream from this position on."""
        # Create the table only when needed, because counting must not wait for the write lock.
        self._change(HELD_DDL)
        self._change("INSERT OR REPLACE INTO held VALUES (?, ?, ?)", target, key, position)

    def _has_held(self) -> bool:
        return bool(self._number("SELECT count(*) FROM sqlite_master WHERE name = 'held'"))

    def release(self, target: str, key: str) -> None:
        """Resume the stream: the target has all its records up to the cursor."""
        self._change("DELETE FROM held WHERE target = ? AND key = ?", target, key)

    def num_held(self, target: str) -> int:
        """Number of records before the cursor that were not shipped, their stream being held."""
        if not self.held(target):
            return 0
        return self._number(
            "SELECT count(*) FROM held JOIN records ON records.key = held.key AND records.position"
            " >= held.position WHERE target = ? AND records.position < ?",
            target,
            self.cursor(target),
        )

    def coordinates(self, position: int) -> Coordinates:
        """The topic, partition and offset of a record in the local log."""
        (found,) = self._all(
            'SELECT topic, partition, "offset" FROM records JOIN partitions ON partitions.id ='
            " partition_id WHERE position = ?",
            position,
        )
        return Coordinates(*found)

    def _rows(
        self, position: int, end: int | None, limit: int, key: str | None
    ) -> Generator[tuple[int, Record], None, None]:
        """Close the generator after use: an open snapshot keeps the file's WAL from shrinking."""
        statement = (
            "SELECT records.position, topic, key, value FROM records JOIN partitions ON"
            " partitions.id = partition_id WHERE position >= ?1 AND (?2 IS NULL OR position < ?2)"
            " AND (?4 IS NULL OR key = ?4) ORDER BY position LIMIT ?3"
        )
        try:
            with closing(self._connection.execute(statement, (position, end, limit, key))) as rows:
                for at, topic, row_key, value in rows:
                    yield at, Record(topic, row_key, value)
        except sqlite3.Error as error:
            raise broken(self._path, "cannot be read", error) from error

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

    def tidy(self, target: str, older_than: timedelta) -> None:
        """Delete shipped records that are too old and return their space, until `stop` is set."""
        while self._is_wanted() and self.prune(target, older_than, datetime.now(UTC)) == PRUNE_ROWS:
            time.sleep(PAUSE_S)
        if self._is_wanted():
            self.shrink()

    def _is_wanted(self) -> bool:
        return self._stop is None or not self._stop.is_set()

    def prune(self, target: str, older_than: timedelta, now: datetime) -> int:
        """Delete shipped records that are too old, oldest first. Returns how many.

        Call again while the result is PRUNE_ROWS.
        """
        kept = (
            " AND NOT EXISTS (SELECT 1 FROM held WHERE held.key = records.key AND held.position <="
            " records.position)"
        )
        return self._change(
            "DELETE FROM records WHERE position IN (SELECT position FROM records WHERE position < ?"
            f" AND appended_at < ?{kept if self._has_held() else ''} ORDER BY position LIMIT ?)",
            self.cursor(target),
            to_microseconds(now - older_than),
            PRUNE_ROWS,
        )

    def shrink(self) -> None:
        """Return the space of deleted records to the disk, once most of the file is free."""
        page_size = self._number("PRAGMA page_size")
        num_free = self._number("PRAGMA freelist_count")
        num_used = self._number("PRAGMA page_count") - num_free
        if num_free > num_used and num_used * page_size <= REWRITE_BYTES:
            self._change("VACUUM")
            # This truncates the file. If a reader is in the way, a later call does it.
            self._number("PRAGMA wal_checkpoint(PASSIVE)")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _all(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise broken(self._path, "cannot be read", error) from error

    def _number(self, statement: str, *values: object) -> int:
        ((found, *_),) = self._all(statement, *values)
        return 0 if found is None else int(found)

    def _change(self, statement: str, *values: object) -> int:
        try:
            execute = partial(self._connection.execute, statement, values)
            return when_free(self._path, execute, self._stop).rowcount
        except sqlite3.Error as error:
            raise broken(self._path, "can no longer be written", error) from error

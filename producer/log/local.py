"""The local log: the log itself on one machine, the spool in front of Kafka on many.

Appends to the SQLite file and reads streams back. Does not interpret the values.
"""

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from uuid import UUID

from producer.errors import LogBrokenError
from producer.log.local_file import broken, open_for_writing, reading, when_free
from producer.log.local_index import LocalIndex
from producer.log.writer import Coordinates, Record, TopicPartition
from schemas.catalogue import NUM_PARTITIONS
from schemas.home import home_partition, is_foreign
from schemas.local_index import Places, places_of_streams, places_of_training, spans

INSERT = (
    'INSERT INTO records (position, partition_id, "offset", appended_at, key, value) VALUES (?, ?,'
    " ?, ?, ?, ?)"
)
READ_CHUNK = 2000
"""Offsets per query when reading: a long-lived snapshot would keep the WAL from checkpointing."""

# The + makes SQLite use the index of offsets, which returns rows in their order.
SCAN = """SELECT key, value FROM records
          WHERE partition_id = ?1 AND "offset" >= ?2 AND "offset" < ?3
          AND (?4 IS NULL OR +key IN (SELECT value FROM json_each(?4))) ORDER BY "offset\""""
PARTITIONS = "SELECT id, partition, next_offset FROM partitions WHERE topic = ? ORDER BY partition"


class LocalRecords:
    """The records of one file.

    Thread-safe; never waits for a writer. Methods raise LogBrokenError.
    """

    def __init__(self, path: Path) -> None:
        """Does not open the file yet."""
        self._path = path

    def ends(self) -> dict[TopicPartition, int]:
        """Offset after the last record of every partition."""
        with reading(self._path) as connection:
            found = connection.execute("SELECT topic, partition, next_offset FROM partitions")
            return {TopicPartition(topic, partition): end for topic, partition, end in found}

    def read_streams(
        self, topic: str, keys: Collection[str], since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of several streams, each in order, from `since` to the end as of the call.

        Makes one pass over the blocks that may contain any of them.
        """
        wanted = json.dumps(sorted(keys))
        numbers = {home_partition(key, NUM_PARTITIONS) for key in keys}
        yield from self._read(topic, numbers, since, places_of_streams(keys), wanted)

    def read_training(
        self, topic: str, training_id: UUID, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of every record that names the training, and of some that do not."""
        yield from self._read(topic, None, since, places_of_training(training_id), None)

    def read_topic(
        self, topic: str, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of a topic's records, each partition in order, from `since` to the end."""
        yield from self._read(topic, None, since, None, None)

    def _read(
        self,
        topic: str,
        numbers: Collection[int] | None,
        since: Mapping[TopicPartition, int],
        places: Places | None,
        keys: str | None,
    ) -> Iterator[tuple[str, bytes]]:
        """Records of these partitions (None for all), at these places (None for everywhere)."""
        with reading(self._path) as connection:
            rows = connection.execute(PARTITIONS, (topic,)).fetchall()
            offsets = {
                partition_id: range(since.get(TopicPartition(topic, partition), 0), end)
                for partition_id, partition, end in rows
                if numbers is None or partition in numbers
            }
            partitions = {partition_id: partition for partition_id, partition, _ in rows}
            found = offsets.items() if places is None else spans(connection, offsets, places)
            for partition_id, span in found:
                partition = partitions[partition_id]
                for key, value in _scan(connection, partition_id, span, keys):
                    if not is_foreign(key, topic, partition, log_id=""):
                        yield key, value


def _scan(
    connection: sqlite3.Connection, partition_id: int, offsets: range, keys: str | None
) -> Iterator[tuple[str, bytes]]:
    for low in range(offsets.start, offsets.stop, READ_CHUNK):
        # Fetch a whole chunk, because a slow consumer must not keep a snapshot open.
        yield from connection.execute(
            SCAN, (partition_id, low, min(low + READ_CHUNK, offsets.stop), keys)
        ).fetchall()


def _wall_clock_us() -> int:
    return time.time_ns() // 1000


class LocalLog(LocalRecords):
    """LogWriter on a SQLite file. Any number of processes may append to the same file.

    Thread-safe. `append` blocks for a disk sync and for other processes' commits, however long one
    takes (a warning names a process that holds the file's lock for seconds); the reading methods
    have their own connections and do not wait for it. After a failure every `append` raises the
    same LogBrokenError; what was acknowledged before stays readable. `close` is idempotent.
    """

    def __init__(
        self,
        path: Path,
        *,
        topics: Collection[str] = (),
        is_indexed: bool = True,
        clock_us: Callable[[], int] = _wall_clock_us,
        stop: threading.Event | None = None,
    ) -> None:
        """Open or create the file, with all partitions of `topics`. Raises LogBrokenError.

        `is_indexed` keeps the index of streams, with what a spool appended; a spool keeps none.
        Raises StopRequestedError if `stop` is set while opening waits for the write lock; appending
        ignores `stop`.
        """
        super().__init__(path)
        self._clock_us = clock_us
        self._stop_opening = stop
        self._lock = threading.Lock()
        self._failure: LogBrokenError | None = None
        self._connection = open_for_writing(path, stop)
        self._inode = path.stat().st_ino
        self._places: dict[TopicPartition, int] = {}
        self._index = LocalIndex(self._connection) if is_indexed else None
        self._log_id = str(
            self._connection.execute("SELECT value FROM meta WHERE name = 'log_id'").fetchone()[0]
        )
        try:
            self._make_topics(topics)
            if self._index is not None:
                self._index.open(self._begin)
            self._stop_opening = None
        except BaseException as error:
            self._connection.close()
            if isinstance(error, sqlite3.Error):
                raise broken(path, "cannot be written", error) from error
            raise

    @property
    def log_id(self) -> str:
        """The file's identity, assigned at its creation."""
        return self._log_id

    @property
    def path(self) -> Path:
        """The SQLite file."""
        return self._path

    def append(self, records: Sequence[Record]) -> list[Coordinates]:
        """Append in order, in one transaction that is synced on return.

        After LogBrokenError, none of the records is in the log.
        """
        if not records:
            return []
        with self._lock:
            if self._failure is not None:
                raise self._failure
            try:
                coordinates = self._append(records)
                self._check_file()
            except (sqlite3.Error, OSError) as error:
                self._failure = broken(self._path, "can no longer be written", error)
                self._roll_back()
                raise self._failure from error
            return coordinates

    def _append(self, records: Sequence[Record]) -> list[Coordinates]:
        execute = self._connection.execute
        located = [self._locate(record) for record in records]
        self._begin()
        next_position, last_appended_at = execute(
            "SELECT next_position, appended_at FROM head"
        ).fetchone()
        next_offsets: dict[int, int] = dict(execute("SELECT id, next_offset FROM partitions"))
        appended_at = max(self._clock_us(), last_appended_at)
        rows: list[tuple[int, int, int, int, str, bytes]] = []
        coordinates: list[Coordinates] = []
        for position, (record, (partition_id, place)) in enumerate(
            zip(records, located, strict=True), start=next_position
        ):
            offset = next_offsets[partition_id]
            next_offsets[partition_id] = offset + 1
            rows.append((position, partition_id, offset, appended_at, record.key, record.value))
            coordinates.append(Coordinates(place.topic, place.partition, offset))
        self._connection.executemany(INSERT, rows)
        if self._index is not None:
            self._index.extend(rows, records)
        self._connection.executemany(
            "UPDATE partitions SET next_offset = ? WHERE id = ?",
            [(next_offsets[changed], changed) for changed in {row[1] for row in rows}],
        )
        execute(
            "UPDATE head SET next_position = ?, appended_at = ?",
            (next_position + len(rows), appended_at),
        )
        execute("COMMIT")
        return coordinates

    def _locate(self, record: Record) -> tuple[int, TopicPartition]:
        """The partition's row and the partition of a record; creates an unknown topic."""
        place = TopicPartition(record.topic, home_partition(record.key, NUM_PARTITIONS))
        if place not in self._places:
            self._make_topics([record.topic])
        return self._places[place], place

    def _make_topics(self, topics: Collection[str]) -> None:
        rows = [(topic, partition) for topic in topics for partition in range(NUM_PARTITIONS)]
        if rows:
            # In one transaction, because a reader that saw only some partitions would never read
            # the others.
            self._begin()
            self._connection.executemany(
                "INSERT OR IGNORE INTO partitions (topic, partition) VALUES (?, ?)", rows
            )
            self._connection.execute("COMMIT")
        found = self._connection.execute("SELECT topic, partition, id FROM partitions").fetchall()
        self._places = {
            TopicPartition(topic, partition): partition_id
            for topic, partition, partition_id in found
        }

    def _begin(self) -> None:
        begin = partial(self._connection.execute, "BEGIN IMMEDIATE")
        when_free(self._path, begin, self._stop_opening)

    def _check_file(self) -> None:
        """Raise OSError if the file was removed or replaced: SQLite would keep writing to it."""
        if self._path.stat().st_ino != self._inode:
            message = "it was replaced by another file"
            raise OSError(message)

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            # The next process that opens the file rolls it back; report the first failure.
            return

    def close(self) -> None:
        """Close the file. After that, `append` raises."""
        with self._lock:
            if self._failure is None:
                self._failure = LogBrokenError(f"the local log {self._path} was closed")
            self._connection.close()

"""The local log: the log itself on one machine, the spool in front of Kafka on many.

Owns appending to the SQLite file and reading streams back. Does not know what the values mean.
"""

import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from uuid import UUID

from producer.errors import LogBrokenError
from producer.log.local_file import broken, open_for_writing
from producer.log.local_index import LocalIndex
from producer.log.local_records import LocalRecords
from producer.log.write_lock import when_free
from producer.log.writer import Coordinates, Record, TopicPartition
from schemas.catalogue import NUM_PARTITIONS
from schemas.local_log import partition_of

INSERT = (
    'INSERT INTO records (position, partition_id, "offset", appended_at, key, value) VALUES (?, ?,'
    " ?, ?, ?, ?)"
)


def _wall_clock_us() -> int:
    return time.time_ns() // 1000


class LocalLog:
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

        `is_indexed`: keep the index of streams, and bring it up to date first; a spool needs none.
        StopRequestedError once `stop` is set while opening waits for the write lock; appending
        does not heed it.
        """
        self._path = path
        self._clock_us = clock_us
        self._stop_opening = stop
        self._records = LocalRecords(path)
        self._lock = threading.Lock()
        self._failure: LogBrokenError | None = None
        self._closed = False
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
                self._index.open(path, self._begin)
            self._stop_opening = None
        except BaseException as error:
            self._connection.close()
            if isinstance(error, sqlite3.Error):
                raise broken(path, "cannot be written", error) from error
            raise

    @property
    def log_id(self) -> str:
        """The file's identity, given at its creation."""
        return self._log_id

    @property
    def path(self) -> Path:
        """The SQLite file."""
        return self._path

    def append(self, records: Sequence[Record]) -> list[Coordinates]:
        """Append in order, in one transaction, synced on return. LogBrokenError: none is."""
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
        touched: set[int] = set()
        appended_at = max(self._clock_us(), last_appended_at)
        rows: list[tuple[int, int, int, int, str, bytes]] = []
        coordinates: list[Coordinates] = []
        for position, (record, (partition_id, place)) in enumerate(
            zip(records, located, strict=True), start=next_position
        ):
            offset = next_offsets[partition_id]
            next_offsets[partition_id] = offset + 1
            touched.add(partition_id)
            rows.append((position, partition_id, offset, appended_at, record.key, record.value))
            coordinates.append(Coordinates(place.topic, place.partition, offset))
        self._connection.executemany(INSERT, rows)
        if self._index is not None:
            self._index.extend(rows, records)
        self._connection.executemany(
            "UPDATE partitions SET next_offset = ? WHERE id = ?",
            [(next_offsets[partition_id], partition_id) for partition_id in touched],
        )
        execute(
            "UPDATE head SET next_position = ?, appended_at = ?",
            (next_position + len(rows), appended_at),
        )
        execute("COMMIT")
        return coordinates

    def _locate(self, record: Record) -> tuple[int, TopicPartition]:
        """Partition row and partition of a record; creates an unknown topic."""
        place = TopicPartition(record.topic, partition_of(record.key, NUM_PARTITIONS))
        if place not in self._places:
            self._make_topics([record.topic])
        return self._places[place], place

    def _make_topics(self, topics: Collection[str]) -> None:
        rows = [(topic, partition) for topic in topics for partition in range(NUM_PARTITIONS)]
        if rows:
            # One transaction: a reader that saw some partitions would never read the others.
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
        """OSError when the file was removed or replaced: SQLite would go on writing to it."""
        if self._path.stat().st_ino != self._inode:
            message = "it was replaced by another file"
            raise OSError(message)

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            # The next to open the file undoes it; the first failure is the one to report.
            return

    def ends(self) -> dict[TopicPartition, int]:
        """Offset after the last record of every partition."""
        return self._records.ends()

    def read_streams(
        self, topic: str, keys: Collection[str], since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of several streams, each in order, from `since` to the end at call."""
        return self._records.read_streams(topic, keys, since)

    def read_training(
        self, topic: str, training_id: UUID, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of every record that names the training, and of some that do not."""
        return self._records.read_training(topic, training_id, since)

    def read_topic(
        self, topic: str, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of a topic's records, each partition in order, from `since` to the end."""
        return self._records.read_topic(topic, since)

    def close(self) -> None:
        """Close the file; `append` raises from then on."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._failure = self._failure or LogBrokenError(
                    f"the local log {self._path} was closed"
                )
                self._connection.close()

"""Reads the local log's records: of streams, of a training, of a topic. Writes nothing.

Every call opens the file for itself, also one that may only be read (`schemas.readable_log`).
"""

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from uuid import UUID

from producer.log.local_file import reading
from producer.log.writer import TopicPartition
from schemas.catalogue import NUM_PARTITIONS
from schemas.local_index import Places, places_of_streams, places_of_training, spans
from schemas.local_log import partition_of

READ_CHUNK = 2000
"""Offsets per query when reading: a long-lived snapshot would keep the WAL from checkpointing."""

# The + makes SQLite use the index of offsets, which gives their order.
SCAN = """SELECT key, value FROM records
          WHERE partition_id = ?1 AND "offset" >= ?2 AND "offset" < ?3
          AND (?4 IS NULL OR +key IN (SELECT value FROM json_each(?4))) ORDER BY "offset\""""
PARTITIONS = "SELECT id, partition, next_offset FROM partitions WHERE topic = ? ORDER BY partition"


class LocalRecords:
    """The records of one file. Thread-safe, and waits for no writer. LogBrokenError."""

    def __init__(self, path: Path) -> None:
        """Opens nothing yet."""
        self._path = path

    def ends(self) -> dict[TopicPartition, int]:
        """Offset after the last record of every partition."""
        with reading(self._path) as connection:
            found = connection.execute("SELECT topic, partition, next_offset FROM partitions")
            return {TopicPartition(topic, partition): end for topic, partition, end in found}

    def read_streams(
        self, topic: str, keys: Collection[str], since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of several streams, each in order, from `since` to the end at call.

        One pass over the blocks that may hold any of them.
        """
        wanted = json.dumps(sorted(keys))
        numbers = {partition_of(key, NUM_PARTITIONS) for key in keys}
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
        """Records of these partitions (None: all), at these places (None: everywhere)."""
        with reading(self._path) as connection:
            offsets = {
                partition_id: range(since.get(TopicPartition(topic, partition), 0), end)
                for partition_id, partition, end in connection.execute(PARTITIONS, (topic,))
                if numbers is None or partition in numbers
            }
            found = offsets.items() if places is None else spans(connection, offsets, places)
            for partition_id, span in found:
                yield from _scan(connection, partition_id, span, keys)


def _scan(
    connection: sqlite3.Connection, partition_id: int, offsets: range, keys: str | None
) -> Iterator[tuple[str, bytes]]:
    for low in range(offsets.start, offsets.stop, READ_CHUNK):
        # Fetch a chunk whole: a slow consumer must not keep a snapshot open.
        yield from connection.execute(
            SCAN, (partition_id, low, min(low + READ_CHUNK, offsets.stop), keys)
        ).fetchall()

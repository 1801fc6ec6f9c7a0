"""Maintains the index of the local log: adds appended records, and what a spool appended.

`schemas.local_index` describes the layout and its rules.
"""

import sqlite3
from collections.abc import Callable, Sequence

from producer.log.writer import Record
from schemas.local_index import (
    BLOCK_OFFSETS,
    BOUNDS,
    Entry,
    entries_of,
)

REMEMBERED = 100_000
"""Number of streams whose last entry is remembered, about 20 MB. A repeated entry is ignored."""

ADD_STREAM = "INSERT OR IGNORE INTO stream_blocks VALUES (?, ?, ?)"
ADD_TRAINING = "INSERT OR IGNORE INTO training_blocks VALUES (?, ?, ?)"
Row = tuple[int, int, int, int, str, bytes]
"""Position, partition id, offset, append time, key and value."""
ADVANCE = "UPDATE head SET indexed_to = ? WHERE indexed_to = ?"


class LocalIndex:
    """Adds index entries for what one connection appends. Not thread-safe.

    After a transaction that was rolled back, create a new one, because this one remembers its
    entries as added.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._known: dict[str, tuple[int, str, int]] = {}
        """Maps a stream to its last record's block, its training and its partition id."""
        self._known_blocks: dict[tuple[str, int], int] = {}
        """Maps (training, partition id) to the block of its last entry."""

    def open(self, begin: Callable[[], object]) -> None:
        """Index what a spool appended to the file, which keeps no index.

        `begin` begins the transaction and may wait for the file's write lock.
        """
        indexed_to, next_position = self._connection.execute(BOUNDS).fetchone()
        if indexed_to < next_position:
            begin()
            _, end = self._connection.execute(BOUNDS).fetchone()
            self._catch_up(end)
            self._connection.execute("COMMIT")

    def extend(self, rows: Sequence[Row], records: Sequence[Record]) -> None:
        """Index records that the caller inserts as `rows`, in the caller's transaction."""
        position = rows[0][0]
        end = position + len(rows)
        if self._connection.execute(ADVANCE, (end, position)).rowcount:
            self._add(rows, records)
        else:  # a process that spools has appended in between
            self._catch_up(end)

    def _catch_up(self, end: int) -> None:
        """Index every record below position `end`, inside the caller's transaction."""
        begin, _ = self._connection.execute(BOUNDS).fetchone()
        streams: set[Entry] = set()
        trainings: set[Entry] = set()
        for partition_id, offset, key, value in self._connection.execute(
            'SELECT partition_id, "offset", key, value FROM records WHERE position >= ?', (begin,)
        ):
            entries = entries_of(partition_id, offset, key, value)
            streams.update(entries.streams)
            trainings.update(entries.trainings)
        self._insert(sorted(streams), sorted(trainings))
        self._connection.execute("UPDATE head SET indexed_to = ?", (end,))

    def _add(self, rows: Sequence[Row], records: Sequence[Record]) -> None:
        known = self._known
        if len(known) > REMEMBERED:
            known.clear()
            self._known_blocks.clear()
        streams: list[Entry] = []
        trainings: list[Entry] = []
        for (_, partition_id, offset, _, key, value), (_, _, _, training) in zip(
            rows, records, strict=True
        ):
            block = offset // BLOCK_OFFSETS
            if known.get(key) == (block, training, partition_id):
                continue
            if training is None:
                entries = entries_of(partition_id, offset, key, value)
                streams += entries.streams
                trainings += entries.trainings
                continue
            known[key] = (block, training, partition_id)
            streams.append((key, partition_id, block))
            if training and self._known_blocks.get((training, partition_id)) != block:
                self._known_blocks[training, partition_id] = block
                trainings.append((training, partition_id, block))
        self._insert(streams, trainings)

    def _insert(self, streams: Sequence[Entry], trainings: Sequence[Entry]) -> None:
        for statement, entries in ((ADD_STREAM, streams), (ADD_TRAINING, trainings)):
            if entries:
                self._connection.executemany(statement, entries)

"""Maintains the index of the local log: creates it, catches up, and adds appended records.

`schemas.local_index` describes the layout and its rules.
"""

import logging
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from producer.log.writer import Record
from schemas.local_index import (
    BLOCK_OFFSETS,
    BOUNDS,
    INDEX_DDL,
    IS_INDEXED,
    Entry,
    entries_of,
)

logger = logging.getLogger(__name__)

STEP_RECORDS = 2_000
"""Records indexed per transaction, which takes about 20 ms, so that other processes' commits hardly
wait."""
REPORT_AFTER_S, REPORT_EVERY_S = 1.0, 5.0
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

    def open(
        self,
        path: Path,
        begin: Callable[[], object],
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create the index if it is missing, and index what older versions appended.

        Works in short transactions of its own: if killed in between, the next process continues
        from there, and two processes share the work. `begin` begins one of them and may wait for
        the file's write lock. Logs progress if it takes more than a second.
        """
        execute = self._connection.execute
        if not execute(IS_INDEXED).fetchone():
            begin()
            # Another process may have been faster.
            if not execute(IS_INDEXED).fetchone():
                for statement in INDEX_DDL:
                    execute(statement)
            execute("COMMIT")
        began_s = clock_s()
        due_s, is_long = began_s + REPORT_AFTER_S, False
        first, end = execute(BOUNDS).fetchone()
        position = first
        while position < end:
            now_s = clock_s()
            if position > first and now_s >= due_s:
                due_s, is_long = now_s + REPORT_EVERY_S, True
                left_s = (end - position) * (now_s - began_s) / (position - first)
                logger.info(
                    "indexing the local log %s, once: %d of %d events, about %.0f s left",
                    *(path, position - 1, end - 1, left_s),
                )
            begin()
            position, end = execute(BOUNDS).fetchone()
            position = self.catch_up(position, end)
            execute("UPDATE head SET indexed_to = ?", (position,))
            execute("COMMIT")
            position, end = execute(BOUNDS).fetchone()
        if is_long:
            logger.info("indexed the local log in %.0f s", clock_s() - began_s)

    def catch_up(self, begin: int, end: int) -> int:
        """Index some records from position `begin` on, inside the caller's transaction.

        `end` is the log's next position. Returns the position below which all records are indexed.
        """
        rows = self._connection.execute(
            'SELECT position, partition_id, "offset", key, value FROM records WHERE position >= ?'
            " ORDER BY position LIMIT ?",
            (begin, STEP_RECORDS),
        )
        streams: set[Entry] = set()
        trainings: set[Entry] = set()
        num_read = 0
        for position, partition_id, offset, key, value in rows:
            entries = entries_of(partition_id, offset, key, value)
            streams.update(entries.streams)
            trainings.update(entries.trainings)
            begin, num_read = position + 1, num_read + 1
        self._insert(sorted(streams), sorted(trainings))
        # Fewer than the limit: nothing is left, and positions in between were pruned.
        return begin if num_read == STEP_RECORDS else end

    def extend(self, rows: Sequence[Row], records: Sequence[Record]) -> None:
        """Index records that the caller inserts as `rows`, in the caller's transaction.

        While the index is behind, catches up one step instead.
        """
        position = rows[0][0]
        end = position + len(rows)
        if self._connection.execute(ADVANCE, (end, position)).rowcount:
            self._add(rows, records)
            return
        # A version without the index, or a process that keeps none, has appended in between.
        begin, _ = self._connection.execute(BOUNDS).fetchone()
        self._connection.execute("UPDATE head SET indexed_to = ?", (self.catch_up(begin, end),))

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

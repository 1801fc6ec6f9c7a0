"""Reads the local log, an SQLite file (layout: `schemas.local_log`).

Reads in the file's own order (position): one sequential scan for any set of partitions, which gives
records merged by append time.
"""

import heapq
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from operator import itemgetter
from pathlib import Path

from consumers.errors import MismatchError
from consumers.log.local_file import LocalLogFile
from consumers.log.reader import LastRecord, LogRecord, TopicPartition
from schemas.catalogue import TOPIC_NAMES
from schemas.local_index import Places, spans
from schemas.local_log import from_microseconds, to_microseconds

MOST_BYTES = 64 << 20
"""Values of one `poll`: 5,000 records of 16 MB would not fit into any memory."""
SHORTEST_NAP_S, LONGEST_NAP_S = 0.002, 0.050
"""Between queries for new records: short after a record, longer while none come."""
FEWEST_BACKWARDS, MOST_BACKWARDS = 8, 128
"""Records of a partition per query when reading backwards; 24 partitions of 40 kB are 120 MB."""
MOST_AT_ONCE = 128
"""The same when reading forwards by the index."""
MOST_BYTES_AT_ONCE = 4 << 20
"""Of the values of either."""

StoredRow = tuple[int, int, int, str | None, bytes, datetime]
"""Position, partition's id, offset, key, value, when it was appended."""


class LocalLogReader:
    """LogReader of a local log. A missing file is an empty log until it is created.

    Not thread-safe, but may move between threads. Never blocks the writer or keeps its WAL from
    being truncated: every statement is fetched completely, so that no snapshot stays open.
    """

    def __init__(self, path: Path, *, topic_prefix: str) -> None:
        """Opens the file on first use."""
        self._path = path
        self._topics = [topic_prefix + name for name in TOPIC_NAMES]
        self._file = LocalLogFile(path)
        self._wanted: dict[TopicPartition, int] = {}
        """The next offsets to return."""
        self._places_by_id: dict[int, TopicPartition] = {}
        self._scan = ""
        self._next_position = 1

    @property
    def kind(self) -> str:
        """`local`."""
        return "local"

    @property
    def log_id(self) -> str:
        """The file's identity; "" until it exists."""
        return self._file.log_id

    @property
    def problem(self) -> str | None:
        """None: a file that cannot be read is an error at once."""
        return None

    def partitions(self) -> list[TopicPartition]:
        """Every partition of the installation's topics, sorted.

        Empty when nothing was ever written.
        """
        return sorted(tp for tp in self._ids() if tp.topic in self._topics)

    def beginning_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """First offset; above 0 where a spool was pruned."""
        ends = self.end_offsets(partitions)
        ids = self._ids()
        found: dict[TopicPartition, int] = {}
        for tp in partitions:
            first = None
            if tp in ids:
                first = self._one(
                    'SELECT min("offset") FROM records WHERE partition_id = ?', (ids[tp],)
                )
            found[tp] = ends[tp] if first is None else first
        return found

    def end_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Offset after the last record."""
        rows = self._all("SELECT topic, partition, next_offset FROM partitions")
        known = {TopicPartition(topic, partition): end for topic, partition, end in rows}
        return {tp: known.get(tp, 0) for tp in partitions}

    def offsets_for_time(
        self, partitions: Sequence[TopicPartition], time: datetime
    ) -> dict[TopicPartition, int]:
        """First offset appended at or after `time`; the end if there is none."""
        ids = self._ids()
        since = to_microseconds(time)
        lows, highs = self.beginning_offsets(partitions), self.end_offsets(partitions)
        found: dict[TopicPartition, int] = {}
        for tp in partitions:
            low, high = lows[tp], highs[tp]
            # Offsets have no gaps and their times never fall, so halving finds the first.
            while low < high:
                middle = (low + high) // 2
                at = self._one(
                    'SELECT appended_at FROM records WHERE partition_id = ? AND "offset" = ?',
                    (ids[tp], middle),
                )
                low, high = (middle + 1, high) if at is not None and at < since else (low, middle)
            found[tp] = low
        return found

    def replaced(self, last: Mapping[TopicPartition, LastRecord]) -> dict[TopicPartition, datetime]:
        """Partitions that have another record at the offset before `next_offset`, and its time."""
        ids = self._ids()
        found: dict[TopicPartition, datetime] = {}
        for tp, (next_offset, appended_at) in last.items():
            at = self._one(
                'SELECT appended_at FROM records WHERE partition_id = ? AND "offset" = ?',
                (ids.get(tp), next_offset - 1),
            )
            if at is not None and at != to_microseconds(appended_at):
                found[tp] = from_microseconds(at)
        return found

    def seek(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions from these offsets, and no others.

        MismatchError for an offset that is not in this log.
        """
        partitions = list(positions)
        ends, beginnings = self.end_offsets(partitions), self.beginning_offsets(partitions)
        for tp, offset in positions.items():
            if not beginnings[tp] <= offset <= ends[tp]:
                message = (
                    f"{tp.topic}/{tp.partition} has offsets {beginnings[tp]} to"
                    f" {ends[tp]}, not {offset}: the position is of another log than"
                    f" {self._path}, or that file was replaced by an older copy"
                )
                raise MismatchError(message)
        self._wanted = dict(positions)
        self._plan()

    def _plan(self) -> None:
        """Decide where the scan begins and which partitions it selects."""
        ids = self._ids()
        self._places_by_id = {ids[tp]: tp for tp in self._wanted if tp in ids}
        head = self._one("SELECT next_position FROM head", ())
        starts = [1 if head is None else head]
        for partition_id, tp in self._places_by_id.items():
            at = self._one(
                'SELECT position FROM records WHERE partition_id = ? AND "offset" = ?',
                (partition_id, self._wanted[tp]),
            )
            if at is not None:
                starts.append(at)
        self._next_position = min(starts)
        is_whole = len(self._places_by_id) == len(ids)
        chosen = ", ".join(str(partition_id) for partition_id in sorted(self._places_by_id))
        # The + keeps SQLite on the b-tree of positions; with the partitions' index it would sort.
        only = "" if is_whole else f" AND +partition_id IN ({chosen})"
        self._scan = (
            'SELECT position, partition_id, "offset", key, value, appended_at FROM records WHERE'
            f" position >= ?{only} ORDER BY position LIMIT ?"
        )

    def positions(self) -> dict[TopicPartition, int]:
        """The next offsets to return; every offset holds a record here."""
        return dict(self._wanted)

    def poll(self, max_records: int, timeout_s: float) -> list[LogRecord]:
        """Up to `max_records` in the order of appending; waits up to `timeout_s` for the first."""
        deadline = time.monotonic() + timeout_s
        nap_s = SHORTEST_NAP_S
        while not (records := self._read(max_records)):
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                break
            time.sleep(min(nap_s, left_s))
            nap_s = min(nap_s * 2, LONGEST_NAP_S)
        # Also after records: a process that has the removed file open may write into it for ever.
        self._file.check()
        return records

    def _read(self, max_records: int) -> list[LogRecord]:
        if len(self._places_by_id) < len(self._wanted):
            # A partition was sought before the log had it.
            self._plan()
            if not self._places_by_id:
                return []
        elif not self._wanted:
            return []
        wanted, partitions = self._wanted, self._places_by_id
        records: list[LogRecord] = []
        while not records:
            rows = self._records(self._scan, (self._next_position, max_records), MOST_BYTES)
            if not rows:
                break
            self._next_position = rows[-1][0] + 1
            for _, partition_id, offset, key, value, appended_at in rows:
                tp = partitions.get(partition_id)
                # None: a partition created after the scan was planned. Below the wanted offset:
                # another partition made the scan begin earlier.
                if tp is not None and offset >= wanted[tp]:
                    wanted[tp] = offset + 1
                    records.append(LogRecord(*tp, offset, key, value, appended_at))
        return records

    def newest_first(
        self,
        starts: Mapping[TopicPartition, int],
        stops: Mapping[TopicPartition, int],
        places: Places | None = None,
    ) -> Iterator[LogRecord]:
        """The records of the span in the reverse order of appending, read as they are asked for.

        `places`: only records that the index may mean; records that it does not cover are among
        them. Leaves the position of `poll` as it is.
        """
        backwards = [
            self._backwards(at, tp, parts)
            for at, (tp, parts) in self._parts(starts, stops, places).items()
        ]
        for _, record in heapq.merge(*backwards, key=itemgetter(0), reverse=True):
            yield record

    def oldest_first(
        self,
        starts: Mapping[TopicPartition, int],
        stops: Mapping[TopicPartition, int],
        places: Places | None = None,
    ) -> Iterator[LogRecord]:
        """The same in the order of appending. What lies between is not looked at."""
        forwards = [
            self._forwards(at, tp, parts)
            for at, (tp, parts) in self._parts(starts, stops, places).items()
        ]
        for _, record in heapq.merge(*forwards, key=itemgetter(0)):
            yield record

    def _parts(
        self,
        starts: Mapping[TopicPartition, int],
        stops: Mapping[TopicPartition, int],
        places: Places | None,
    ) -> dict[int, tuple[TopicPartition, list[range]]]:
        """Partition's id -> (partition, offsets to look at, ascending)."""
        ids = self._ids()
        partitions = {ids[tp]: tp for tp in starts if tp in ids}
        found: dict[int, tuple[TopicPartition, list[range]]] = {}
        for partition_id, offsets in self._spans(
            {at: range(starts[tp], stops[tp]) for at, tp in partitions.items()}, places
        ):
            found.setdefault(partition_id, (partitions[partition_id], []))[1].append(offsets)
        return found

    def _spans(
        self, partitions: Mapping[int, range], places: Places | None
    ) -> list[tuple[int, range]]:
        found = list(partitions.items())
        if places is None:
            return found
        return self._file.ask(lambda connection: list(spans(connection, partitions, places)), found)

    def _backwards(
        self, partition_id: int, tp: TopicPartition, parts: Sequence[range]
    ) -> Iterator[tuple[int, LogRecord]]:
        """(position, record) of one partition, newest first; few at first, then more at once."""
        limit = FEWEST_BACKWARDS
        for offsets in reversed(parts):
            stop = offsets.stop
            while stop > offsets.start:
                rows = self._records(
                    'SELECT position, partition_id, "offset", key, value, appended_at FROM records'
                    ' WHERE partition_id = ? AND "offset" >= ? AND "offset" < ? ORDER BY "offset"'
                    " DESC LIMIT ?",
                    (partition_id, offsets.start, stop, limit),
                    MOST_BYTES_AT_ONCE,
                )
                if not rows:
                    break
                for position, _, offset, key, value, appended_at in rows:
                    yield position, LogRecord(*tp, offset, key, value, appended_at)
                stop, limit = rows[-1][2], min(limit * 2, MOST_BACKWARDS)

    def _forwards(
        self, partition_id: int, tp: TopicPartition, parts: Sequence[range]
    ) -> Iterator[tuple[int, LogRecord]]:
        """(position, record) of one partition in order."""
        for offsets in parts:
            start = offsets.start
            while start < offsets.stop:
                rows = self._records(
                    'SELECT position, partition_id, "offset", key, value, appended_at FROM records'
                    ' WHERE partition_id = ? AND "offset" >= ? AND "offset" < ? ORDER BY "offset"'
                    " LIMIT ?",
                    (partition_id, start, offsets.stop, MOST_AT_ONCE),
                    MOST_BYTES_AT_ONCE,
                )
                if not rows:
                    break
                for position, _, offset, key, value, appended_at in rows:
                    yield position, LogRecord(*tp, offset, key, value, appended_at)
                start = rows[-1][2] + 1

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._file.close()

    def _ids(self) -> dict[TopicPartition, int]:
        rows = self._all("SELECT topic, partition, id FROM partitions")
        return {
            TopicPartition(topic, partition): partition_id
            for topic, partition, partition_id in rows
        }

    def _one(self, statement: str, values: Sequence[object]) -> int | None:
        rows = self._all(statement, values)
        return rows[0][0] if rows else None

    def _records(self, statement: str, values: Sequence[object], max_bytes: int) -> list[StoredRow]:
        """A query's first rows: one, and more until their values have `max_bytes`."""

        def query(connection: sqlite3.Connection) -> list[StoredRow]:
            rows: list[StoredRow] = []
            size = 0
            # Closed, so that no snapshot stays open.
            with closing(connection.execute(statement, values)) as cursor:
                for position, partition_id, offset, key, value, appended_at in cursor:
                    # Whoever writes into the file may have stored any type.
                    value = value if type(value) is bytes else str(value).encode()  # noqa: PLW2901
                    at = from_microseconds(appended_at)
                    rows.append((position, partition_id, offset, key, value, at))
                    size += len(value)
                    if size >= max_bytes:
                        break
            return rows

        return self._file.ask(query, [])

    def _all(self, statement: str, values: Sequence[object] = ()) -> list[tuple]:  # type: ignore[type-arg]  # columns differ
        return self._file.ask(
            lambda connection: connection.execute(statement, values).fetchall(), []
        )

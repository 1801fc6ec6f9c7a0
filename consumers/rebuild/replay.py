"""Fills a side schema from the log, to exact positions, with the live projection's own code."""

import time
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Self, TypeVar

from consumers.database.connection import WRITER_SETTINGS, Connection, connect, join_group
from consumers.errors import CuaProjectError, UnreachableError
from consumers.fold.fold import EVERYTHING, ReplayFilter
from consumers.fold.parse import ParsedRecord, parse_records
from consumers.log.reader import LogReader, TopicPartition
from consumers.progress import ReplayProgress
from consumers.projection.outage import Outage
from consumers.projection.pipeline import InTurn, Pipeline
from consumers.projection.positions import Positions, count_events, start_positions
from consumers.projection.schema import ProjectedSchema
from schemas.catalogue import stream_kind

BATCH_RECORDS = 20_000
POLL_S = 1.0
SILENCE_LIMIT_S = 60.0
"""A log that returns nothing for so long, although it has more, counts as unreachable."""

Answer = TypeVar("Answer")


class Replay:
    """One existing side schema being filled. Not thread-safe; a context manager."""

    def __init__(
        self,
        reader: LogReader,
        url: str,
        schema: str,
        *,
        replay_filter: ReplayFilter = EVERYTHING,
        group: int | None = None,
        is_shard: bool = False,
        progress: ReplayProgress | None = None,
        session: Connection | None = None,
    ) -> None:
        """`group`: of the projector that fills its live tables; its sessions join it.

        `is_shard`: other processes fill the other partitions.
        `session`: the only one that sees the schema, whose tables are temporary; it stays open.
        """
        self._is_shard = is_shard
        self._reader = reader
        self._progress = progress
        self._url = url
        settings = None if group is None else WRITER_SETTINGS
        self._session = session
        self._connection = session or connect(url, f"fill {schema}", settings)
        self._lookups = session or connect(url, f"fill {schema}, lookups", settings)
        if group is not None:
            join_group(self._connection, group)
            join_group(self._lookups, group)
        if session is None:
            self._lookups.autocommit = True
        self._target = ProjectedSchema(
            *(self._connection, schema, reader.log_id),
            replay_filter=replay_filter,
        )
        self._target.load()
        if not is_shard:
            with self._connection, self._connection.cursor() as cursor:
                self._target.committed.num_events = count_events(cursor, schema)

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    @property
    def positions(self) -> Positions:
        """The next offsets to apply."""
        return self._target.committed.positions

    @property
    def num_events(self) -> int:
        """Events applied so far, by earlier replays of the schema too; of a shard, by itself."""
        return self._target.committed.num_events

    def lag(self, until: Mapping[TopicPartition, int]) -> int:
        """Records to apply before these positions."""
        return _lag(self.positions, until)

    def log_end(self) -> Positions:
        """Where the log ends now; waits while Kafka is away."""
        return self._ask(lambda: self._reader.end_offsets(self._reader.partitions()))

    def advance(self, until: Positions) -> None:
        """Apply everything before these positions and nothing after; waits while Kafka is away.

        CuaProjectError when the log lacks some of it.
        """
        if not self._ask(lambda: self._seek(until)):
            return
        silence = _Silence(self._reader)
        with self._writer() as writer:
            while (left := _lag(self._target.folded, until)) > 0:
                records = self._reader.poll(BATCH_RECORDS, POLL_S)
                ends = {
                    at: min(offset, until.get(at, 0))
                    for at, offset in self._reader.positions().items()
                }
                wanted = [
                    record
                    for record in records
                    if record.offset < until[TopicPartition(record.topic, record.partition)]
                ]
                parsed_records = parse_records(wanted, self._reader.log_id)
                if self._is_shard and (problem := without_stream(parsed_records)):
                    raise CuaProjectError(problem)
                read_to = {
                    at: end for at, end in ends.items() if end > self._target.folded.get(at, 0)
                }
                silence.note(is_silent=not (read_to or records), left=left)
                if read_to:
                    writer.send(parsed_records, read_to)
                    self._show(self._target.folded, until)
            writer.settle()

    def _seek(self, until: Positions) -> bool:
        """Whether the log has more before these positions, which is then read next."""
        behind = {
            at: position
            for at, position in start_positions(self.positions, self._reader).items()
            if until.get(at, 0) > position
        }
        if behind:
            self._reader.seek(behind)
        return bool(behind)

    def _ask(self, question: Callable[[], Answer]) -> Answer:
        """The log's answer. UnreachableError when it refuses; of a local file, at once."""
        outage = Outage(time.monotonic)
        while True:
            try:
                answer = question()
            except UnreachableError as error:
                if error.is_refusal or self._reader.kind == "local":
                    raise
                time.sleep(outage.failed(str(error)))
            else:
                outage.over()
                return answer

    def _writer(self) -> Pipeline | InTurn:
        return InTurn(self._target) if self._session else Pipeline(self._target, self._lookups)

    def _show(self, positions: Mapping[TopicPartition, int], until: Positions) -> None:
        if self._progress is not None:
            total = sum(until.values())
            self._progress.advance_to(total - _lag(positions, until), total)

    def close(self) -> None:
        """Close its connections. Idempotent."""
        if self._session is None:
            self._connection.close()
            self._lookups.close()


class _Silence:
    """A log that returns nothing although it has more. Not thread-safe."""

    def __init__(self, reader: LogReader) -> None:
        self._reader = reader
        self._seconds = 0.0
        self._outage = Outage(time.monotonic)

    def note(self, *, is_silent: bool, left: int) -> None:
        """After a poll. UnreachableError when the log is there and nothing comes for too long."""
        problem = self._reader.problem
        if is_silent and problem is not None:
            self._outage.failed(problem)
        if not is_silent:
            self._outage.over()
        self._seconds = self._seconds + POLL_S if is_silent and problem is None else 0.0
        if self._seconds > SILENCE_LIMIT_S:
            message = (
                f"the log returned nothing for {SILENCE_LIMIT_S:.0f} s although {left} records are"
                " left; is it whole?"
            )
            raise UnreachableError(message, is_refusal=True)


def _lag(positions: Mapping[TopicPartition, int], until: Mapping[TopicPartition, int]) -> int:
    return sum(max(0, end - positions.get(at, 0)) for at, end in until.items())


def check_beginning(reader: LogReader) -> None:
    """CuaProjectError when the log's first records were deleted: the rest gives other tables."""
    for at, first in sorted(reader.beginning_offsets(reader.partitions()).items()):
        if first > 0:
            message = (
                f"{at.topic}/{at.partition} begins at offset {first}: records were deleted, and"
                " what remains is not the whole"
            )
            ways = ("put them back", "give an archive that has them with --archive")
            raise CuaProjectError(message, ways=ways)


def without_stream(parsed_records: Iterable[ParsedRecord]) -> str | None:
    """Names a record that names no stream, or a decision about one; None: there is none.

    They are in different partitions and change one row, so not in several processes. Rare.
    """
    for parsed in parsed_records:
        if stream_kind(parsed.stream) == "record" and not parsed.is_foreign:
            record = parsed.record
            return f"{record.topic}/{record.partition} offset {record.offset} names no stream"
    return None

"""One projected schema as its writer sees it: positions, streams, and the commit of both.

Serves the live schema and those that a rebuild fills. Knows no loop and no lease.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import psycopg2

from consumers.database.connection import Connection, Cursor
from consumers.fold.apply import Write
from consumers.fold.fold import EVERYTHING, Fold, FoldedBatch, ReplayFilter, missing_streams
from consumers.fold.order import PartitionProgress
from consumers.fold.parse import ParsedRecord
from consumers.fold.stream import Stream
from consumers.log.reader import TopicPartition
from consumers.projection.positions import (
    Positions,
    ProjectionState,
    advance,
    load_positions,
    load_state,
)
from consumers.projection.retry import retry_decided
from consumers.projection.savepoints import is_refused, write_singly
from consumers.projection.stored import find_owned, load_streams
from consumers.projection.write import (
    Command,
    UnwritableError,
    batch_commands,
    execute,
)

MAX_STREAMS = 20_000
"""Kept in memory between batches; a stream's state is about 1 KiB."""
MAX_SINGLY = 32
"""A batch that the database refuses is halved until this few records are left; those are written
one by one."""


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """A batch that is ready to be committed; later batches do not change it."""

    parsed_records: Sequence[ParsedRecord]
    rest: Sequence[ParsedRecord]
    """Records behind it, which are to be folded once it is committed: a batch ends at a decision
    that has a stream tried again."""
    base: Positions
    """Where its partitions must be."""
    partitions: Mapping[tuple[str, int], PartitionProgress]
    commands: Sequence[Command]
    num_events: int
    decided: Sequence[str]
    """Streams whose parked records an operator's decision has tried again, in its transaction. No
    batch may be folded before this one is committed."""


def _nothing() -> None:
    pass


@dataclass(slots=True)
class Committed:
    """What has been committed; outlives the connection that committed it."""

    positions: Positions = field(default_factory=dict)
    """The next offset to read, of every partition that was read."""
    num_events: int = 0


class ProjectedSchema:
    """A schema, its positions and its streams.

    Not thread-safe, except that `commit` touches only the connection and may run in another thread.
    After an exception of any method call `load` first: memory may be ahead of the tables.
    """

    def __init__(
        self,
        connection: Connection,
        schema: str,
        log_id: str,
        *,
        replay_filter: ReplayFilter = EVERYTHING,
        committed: Committed | None = None,
    ) -> None:
        self.connection = connection
        self.schema = schema
        self.log_id = log_id
        self.committed = committed or Committed()
        self.state = ProjectionState("", 0, "", None)
        self._streams: dict[str, Stream] = {}
        self._folded: Positions = {}
        self._replay_filter = replay_filter

    def load(self) -> None:
        """Drop everything in memory and read the tables' state."""
        self.load_and_hold()
        self.connection.commit()

    def load_and_hold(self) -> None:
        """Load, and let no operator change anything before the transaction ends: `apply` ends it.

        Whoever decides again and again would otherwise outrun a projector for ever.
        """
        self.connection.rollback()
        with self.connection.cursor() as cursor:
            cursor.execute(f'LOCK TABLE "{self.schema}".reader_position IN ROW EXCLUSIVE MODE')
            self.state = load_state(cursor, self.schema)
            self.committed.positions = load_positions(cursor, self.schema)
        self._forget()

    @property
    def folded(self) -> Positions:
        """Positions with everything that is folded, committed or not."""
        return self._folded

    def _forget(self) -> None:
        self._streams.clear()
        self._folded = dict(self.committed.positions)

    def apply(
        self,
        parsed_records: Sequence[ParsedRecord],
        read_to: Mapping[TopicPartition, int] | None = None,
        keep_going: Callable[[], object] = _nothing,
    ) -> None:
        """Fold records and commit them with their positions. SupersededError.

        `read_to`: as `fold`. `keep_going` is called between the parts of a long transaction.
        """
        rest = self.apply_first(parsed_records, read_to, keep_going)
        while rest:
            rest = self.apply_first(rest, read_to, keep_going)

    def apply_first(
        self,
        parsed_records: Sequence[ParsedRecord],
        read_to: Mapping[TopicPartition, int] | None = None,
        keep_going: Callable[[], object] = _nothing,
    ) -> Sequence[ParsedRecord]:
        """As `apply`, up to where a batch ends; what is left to apply."""
        try:
            prepared = self.fold(parsed_records, self.connection, read_to)
            self.commit(prepared, keep_going=keep_going)
        except (psycopg2.Error, UnwritableError) as error:
            if not is_refused(error):
                raise
            self.apply_in_parts(parsed_records, keep_going)
            return ()
        self.settle(prepared)
        return prepared.rest

    def fold(
        self,
        parsed_records: Sequence[ParsedRecord],
        connection: Connection,
        read_to: Mapping[TopicPartition, int] | None = None,
    ) -> PreparedBatch:
        """Fold records after everything that was folded before, but for `PreparedBatch.rest`.

        `connection` loads streams.

        `read_to`: the next offsets to read, where the log holds no record between the last one and
        them (`LogReader.positions`).
        """
        with connection.cursor() as cursor:
            return self._fold(parsed_records, cursor, read_to=read_to)

    def _fold(
        self,
        parsed_records: Sequence[ParsedRecord],
        cursor: Cursor,
        write: Write | None = None,
        read_to: Mapping[TopicPartition, int] | None = None,
    ) -> PreparedBatch:
        subjects = missing_streams(parsed_records, self._streams)
        if subjects:
            self._streams.update(load_streams(cursor, self.schema, subjects))
        fold = Fold(
            self._streams,
            log_id=self.log_id,
            write=write,
            find_owned=partial(find_owned, cursor, self.schema),
            replay_filter=self._replay_filter,
        )
        fold.take_all(parsed_records)
        rest = parsed_records[fold.num_taken :]
        for at in list(fold.batch.partitions):
            # Records that a replay takes last move no position back.
            fold.stay_at(at, self._folded.get(TopicPartition(*at), 0))
        for at, offset in ({} if rest else read_to or {}).items():
            if offset > self._folded.get(at, 0):
                fold.skip_to(at, offset)
        return self._prepare(parsed_records[: fold.num_taken], rest, fold.batch)

    def _prepare(
        self,
        parsed_records: Sequence[ParsedRecord],
        rest: Sequence[ParsedRecord],
        batch: FoldedBatch,
    ) -> PreparedBatch:
        base = {
            TopicPartition(*at): self._folded.get(TopicPartition(*at), 0) for at in batch.partitions
        }
        commands = batch_commands(self.schema, batch)
        for stream in batch.streams.values():
            stream.is_stored = True
            stream.end_batch()
        for at, progress in batch.partitions.items():
            self._folded[TopicPartition(*at)] = progress.next_offset
        if len(self._streams) > MAX_STREAMS:
            # Every batch before this one is committed when the next one is folded; this one may not
            # be, so its streams stay.
            self._streams = dict(batch.streams)
        decided = sorted(batch.decided)
        return PreparedBatch(
            *(parsed_records, rest, base, batch.partitions, commands, batch.num_events, decided)
        )

    def commit(
        self,
        prepared: PreparedBatch,
        *,
        singly: bool = False,
        keep_going: Callable[[], object] = _nothing,
    ) -> None:
        """One transaction. psycopg2's errors and SupersededError roll it back."""
        with self.connection, self.connection.cursor() as cursor:
            advance(
                cursor,
                self.schema,
                state=self.state,
                log_id=self.log_id,
                base=prepared.base,
                partitions=prepared.partitions,
            )
            execute(cursor, prepared.commands)
            if prepared.decided:
                write = write_singly(cursor, self.schema) if singly else None
                names, replay_filter = prepared.decided, self._replay_filter
                retry_decided(cursor, self.schema, names, write, replay_filter, keep_going)

    def settle(self, prepared: PreparedBatch) -> None:
        """Note that a batch is committed."""
        for at, progress in prepared.partitions.items():
            self.committed.positions[TopicPartition(*at)] = progress.next_offset
        self.committed.num_events += prepared.num_events
        for name in prepared.decided:
            self._streams.pop(name, None)

    def apply_in_parts(
        self, parsed_records: Sequence[ParsedRecord], keep_going: Callable[[], object] = _nothing
    ) -> None:
        """Apply a batch of which the database refuses some record, so that only that one is parked.

        Whatever was folded after the batch must be folded again.
        """
        self.connection.rollback()
        self._forget()
        if len(parsed_records) > MAX_SINGLY:
            middle = len(parsed_records) // 2
            self.apply(parsed_records[:middle], keep_going=keep_going)
            self.apply(parsed_records[middle:], keep_going=keep_going)
            return
        rest = parsed_records
        while rest:
            rest = self._apply_few(rest, keep_going)

    def _apply_few(
        self, parsed_records: Sequence[ParsedRecord], keep_going: Callable[[], object]
    ) -> Sequence[ParsedRecord]:
        """What is left to apply."""
        try:
            return self._apply_singly(parsed_records, keep_going)
        except (psycopg2.Error, UnwritableError) as error:
            if not is_refused(error):
                raise
            # Rows are parked one by one, so the row of the parked record itself, or its stream's
            # state, is refused: the record is then parked without its content.
            self.connection.rollback()
            self._forget()
            if len(parsed_records) == 1:
                record = bare(parsed_records[0], f"cannot be stored: {error}")
                return self._apply_singly([record], keep_going)
            for parsed in parsed_records:
                self.apply_in_parts([parsed], keep_going)
            return ()

    def _apply_singly(
        self, parsed_records: Sequence[ParsedRecord], keep_going: Callable[[], object]
    ) -> Sequence[ParsedRecord]:
        with self.connection.cursor() as cursor:
            prepared = self._fold(parsed_records, cursor, write_singly(cursor, self.schema))
        self.commit(prepared, singly=True, keep_going=keep_going)
        self.settle(prepared)
        return prepared.rest


def bare(parsed: ParsedRecord, problem: str) -> ParsedRecord:
    """A record of which only the value is kept, parked in its stream."""
    text = problem.encode(errors="replace").decode()
    return ParsedRecord(parsed.record._replace(key=None), parsed.stream, None, text)

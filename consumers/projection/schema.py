"""One projected schema as its writer sees it.

Where it stands, what its streams are, and the transaction that moves both.

Serves the live schema and those that a rebuild fills. Knows no loop and no lease.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psycopg2

from consumers.database.connection import Connection, Cursor
from consumers.fold.fold import (
    EVERYTHING,
    DatabaseRefusedError,
    Fold,
    FoldedBatch,
    ParsedRecord,
    PartitionProgress,
    Probe,
    ReplayFilter,
    stored_subjects,
)
from consumers.fold.held import Held, record_of
from consumers.fold.operator_drops import Drops
from consumers.fold.projectors.projector import Operation
from consumers.fold.streams import Stream, stored_stream
from consumers.log.reader import TopicPartition
from consumers.projection.operator_drops import load_drops
from consumers.projection.positions import (
    Positions,
    ProjectionState,
    advance,
    load_positions,
    load_state,
)
from consumers.projection.write import Command, batch_commands, execute, operation_commands
from schemas.wire import read_envelope

MAX_STREAMS = 20_000
"""Kept in memory between batches; a stream's state is about 1 KiB."""
ONE_BY_ONE = 32
"""Records of a batch that the database refused are halved down to so many before they are tried
singly."""
REFUSED_CLASSES = ("22", "23", "54")
"""SQLSTATE classes that name the data, not the server: data exception, integrity constraint,
program limit."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A batch that is ready to be committed.

    Nothing of it is changed any more, whatever is folded after it.
    """

    parsed_records: Sequence[ParsedRecord]
    base: Positions
    """Where its partitions must stand."""
    partitions: Mapping[tuple[str, int], PartitionProgress]
    commands: Sequence[Command]
    num_events: int
    num_rows: int


class ProjectedSchema:
    """A schema, its positions and its streams.

    Not thread-safe, but for `commit`, which touches the connection alone.

    After any exception but those of bad records, `load` must come before anything else: what is in
    memory may be ahead of the tables.
    """

    def __init__(
        self,
        connection: Connection,
        schema: str,
        log_id: str,
        replay_filter: ReplayFilter = EVERYTHING,
    ) -> None:
        self.connection = connection
        self.schema = schema
        self.log_id = log_id
        self.positions: Positions = {}
        """The next offset to read, of every partition that was read; committed."""
        self.state = ProjectionState("", 0, "", None)
        self.num_events = 0
        """Applied since the beginning."""
        self.num_rows = 0
        """Written since the beginning."""
        self._streams: dict[str, Stream] = {}
        self._ahead: Positions = {}
        """`positions` with everything that is folded, committed or not."""
        self._drops = Drops()
        self._replay_filter = replay_filter

    def load(self) -> None:
        """Forget what is in memory and read where the tables stand."""
        self.connection.rollback()
        with self.connection, self.connection.cursor() as cursor:
            self.state = load_state(cursor, self.schema)
            self.positions = load_positions(cursor, self.schema)
            self._drops = load_drops(cursor)
        self._forget()

    @property
    def ahead(self) -> Positions:
        """Up to where records are folded, committed or not."""
        return self._ahead

    def _forget(self) -> None:
        self._streams.clear()
        self._ahead = dict(self.positions)

    def apply(self, parsed_records: Sequence[ParsedRecord]) -> None:
        """Fold records and commit them with their positions. SupersededError: `load` again."""
        try:
            prepared = self.fold(parsed_records, self.connection)
            self.commit(prepared)
        except psycopg2.Error as error:
            if not is_refused(error):
                raise
            self.apply_in_parts(parsed_records)
        else:
            self.settle(prepared)

    def fold(self, parsed_records: Sequence[ParsedRecord], connection: Connection) -> Prepared:
        """Records as what must be written after everything that was folded before.

        `connection` looks streams up.
        """
        with connection.cursor() as cursor:
            self._look_up(cursor, parsed_records)
        return self._prepare(
            parsed_records,
            Fold(
                self._streams, self._drops, self.log_id, replay_filter=self._replay_filter
            ).take_all(parsed_records),
        )

    def _look_up(self, cursor: Cursor, parsed_records: Sequence[ParsedRecord]) -> None:
        subjects = stored_subjects(parsed_records, self._streams)
        if subjects:
            self._streams.update(load_streams(cursor, self.schema, subjects))

    def _prepare(self, parsed_records: Sequence[ParsedRecord], batch: FoldedBatch) -> Prepared:
        base = {
            TopicPartition(*place): self._ahead.get(TopicPartition(*place), 0)
            for place in batch.partitions
        }
        commands = batch_commands(self.schema, batch)
        for stream in batch.streams.values():
            stream.is_stored = True
        for (topic, partition), progress in batch.partitions.items():
            self._ahead[TopicPartition(topic, partition)] = progress.next_offset
        if len(self._streams) > MAX_STREAMS:
            # The batch before this one may not be committed yet when the next is folded; this one
            # cannot be.
            self._streams = dict(batch.streams)
        return Prepared(
            parsed_records, base, batch.partitions, commands, batch.num_events, batch.rows.count
        )

    def commit(self, prepared: Prepared) -> None:
        """One transaction. psycopg2's errors and SupersededError leave nothing behind."""
        with self.connection, self.connection.cursor() as cursor:
            advance(
                cursor, self.schema, self.state, self.log_id, prepared.base, prepared.partitions
            )
            execute(cursor, prepared.commands)

    def settle(self, prepared: Prepared) -> None:
        """It is committed."""
        for (topic, partition), progress in prepared.partitions.items():
            self.positions[TopicPartition(topic, partition)] = progress.next_offset
        self.num_events += prepared.num_events
        self.num_rows += prepared.num_rows

    def apply_in_parts(self, parsed_records: Sequence[ParsedRecord]) -> None:
        """Find the records that the database refuses, so that they alone are parked.

        What was folded after them must be folded again.
        """
        self.connection.rollback()
        self._forget()
        if len(parsed_records) > ONE_BY_ONE:
            middle = len(parsed_records) // 2
            self.apply(parsed_records[:middle])
            self.apply(parsed_records[middle:])
            return
        with self.connection.cursor() as cursor:
            self._look_up(cursor, parsed_records)
            fold = Fold(
                self._streams,
                self._drops,
                self.log_id,
                probe=probe_with(cursor, self.schema),
                replay_filter=self._replay_filter,
            )
            prepared = self._prepare(parsed_records, fold.take_all(parsed_records))
        self.commit(prepared)
        self.settle(prepared)


def probe_with(cursor: Cursor, schema: str) -> Probe:
    """Writes events one by one, each in a savepoint."""

    def probe(operations: Sequence[Operation]) -> None:
        cursor.execute("SAVEPOINT event")
        try:
            execute(cursor, operation_commands(schema, operations))
        except psycopg2.Error as error:
            if not is_refused(error):
                raise
            cursor.execute("ROLLBACK TO SAVEPOINT event")
            detail = f": {error.diag.message_detail}" if error.diag.message_detail else ""
            message = f"{error.diag.message_primary}{detail}"
            raise DatabaseRefusedError(message) from None
        cursor.execute("RELEASE SAVEPOINT event")

    return probe


def is_refused(error: psycopg2.Error) -> bool:
    """Whether the database refuses the data, rather than not being there."""
    return error.pgcode is not None and error.pgcode[:2] in REFUSED_CLASSES


def load_streams(cursor: Cursor, schema: str, subjects: Sequence[str]) -> dict[str, Stream]:
    """The stored states of these streams, with what of them waits."""
    cursor.execute(
        "SELECT stream, epoch, sequence, source, ends, refused, statuses, parked_since, abandoned,"
        " num_waiting, last_event_at "
        f'FROM "{schema}".stream_position WHERE stream = ANY(%s)',
        (list(subjects),),
    )
    assert cursor.description is not None  # noqa: S101  # a SELECT has columns
    names = [column.name for column in cursor.description]
    rows = [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]
    waiting = load_held(
        cursor, schema, [row["stream"] for row in rows if row["num_waiting"]], "waiting"
    )
    return {
        row["stream"]: stored_stream(
            row, [held for held in waiting if held.stream == row["stream"]]
        )
        for row in rows
    }


def load_held(
    cursor: Cursor, schema: str, subjects: Sequence[str] | None, held_as: str
) -> list[Held]:
    """What is held of these streams, in the log's order; None: what names no stream."""
    if subjects is not None and not subjects:
        return []
    cursor.execute(
        "SELECT log_id, topic, partition, log_offset, held_as, kind, reason, stream, key, value,"
        " appended_at, type IS NOT NULL AS readable "
        f'FROM "{schema}".held_record WHERE held_as = %s AND'
        f" {'stream IS NULL' if subjects is None else 'stream = ANY(%s)'} "
        "ORDER BY topic, partition, log_offset",
        (held_as,) if subjects is None else (held_as, list(subjects)),
    )
    assert cursor.description is not None  # noqa: S101  # a SELECT has columns
    names = [column.name for column in cursor.description]
    held = []
    for values in cursor.fetchall():
        row = dict(zip(names, values, strict=True))
        record = record_of(row)
        envelope = read_envelope(record.value) if row["readable"] else None
        held.append(
            Held(
                row["log_id"],
                record,
                row["held_as"],
                row["kind"],
                row["reason"],
                row["stream"],
                envelope,
            )
        )
    return held

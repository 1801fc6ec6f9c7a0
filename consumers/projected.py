"""One projected schema as its writer sees it: where it stands, what its streams are, and the transaction that moves both.

Serves the live schema and those that a rebuild fills. Knows no loop and no lease.
"""

from collections.abc import Sequence

import psycopg2
from psycopg2.extensions import cursor as Cursor  # noqa: N812  # psycopg2 names its class in lower case

from consumers.connection import Connection
from consumers.drops import Drops
from consumers.fold import EVERYTHING, Batch, DatabaseRefusedError, Fold, Probe, Reading, Selection, stored_subjects
from consumers.held import Held, record_of
from consumers.log.reader import Place
from consumers.operator_drops import load_drops
from consumers.positions import Positions, ProjectionState, advance, load_positions, load_state
from consumers.projectors.projector import Operation
from consumers.streams import Stream, stored_stream
from consumers.writing import write_batch, write_operations
from schemas.wire import read_envelope

MAX_STREAMS = 20_000
"""Kept in memory between batches; a stream's state is about 1 KiB."""
ONE_BY_ONE = 32
"""Records of a batch that the database refused are halved down to so many before they are tried singly."""
REFUSED_CLASSES = ("22", "23", "54")
"""SQLSTATE classes that name the data, not the server: data exception, integrity constraint, program limit."""


class ProjectedSchema:
    """A schema, its positions and its streams. Not thread-safe; one connection, which the caller owns.

    After any exception but those of bad records, `load` must come before the next `apply`: what is in memory may be ahead of the tables.
    """

    def __init__(self, connection: Connection, schema: str, log_id: str, selection: Selection = EVERYTHING) -> None:
        self.connection = connection
        self.schema = schema
        self.log_id = log_id
        self.positions: Positions = {}
        """The next offset to read, of every partition that was read."""
        self.state = ProjectionState("", 0, "", None)
        self.num_rows = 0
        """Rows written since the beginning."""
        self._streams: dict[str, Stream] = {}
        self._drops = Drops()
        self._selection = selection

    def load(self) -> None:
        """Forget what is in memory and read where the tables stand."""
        self.connection.rollback()
        with self.connection, self.connection.cursor() as cursor:
            self.state = load_state(cursor, self.schema)
            self.positions = load_positions(cursor, self.schema)
            self._drops = load_drops(cursor)
        self._streams.clear()

    def apply(self, readings: Sequence[Reading]) -> int:
        """Fold records and commit them with their positions; the number of events applied. SupersededError: `load` again."""
        try:
            batch = self._fold(readings)
            self._commit(batch)
        except psycopg2.Error as error:
            self.connection.rollback()
            if not is_refused(error):
                raise
            return self._apply_halves(readings)
        self._settle(batch)
        return batch.num_events

    def _apply_halves(self, readings: Sequence[Reading]) -> int:
        """Find the records that the database refuses, so that they alone are parked."""
        self._streams.clear()
        if len(readings) <= ONE_BY_ONE:
            return self._apply_singly(readings)
        middle = len(readings) // 2
        return self.apply(readings[:middle]) + self.apply(readings[middle:])

    def _apply_singly(self, readings: Sequence[Reading]) -> int:
        with self.connection.cursor() as cursor:
            self._look_up(cursor, readings)
            fold = Fold(self._streams, self._drops, self.log_id, probe=probe_with(cursor, self.schema), selection=self._selection)
            batch = fold.take_all(readings)
        self._commit(batch)
        self._settle(batch)
        return batch.num_events

    def _fold(self, readings: Sequence[Reading]) -> Batch:
        with self.connection.cursor() as cursor:
            self._look_up(cursor, readings)
        return Fold(self._streams, self._drops, self.log_id, selection=self._selection).take_all(readings)

    def _look_up(self, cursor: Cursor, readings: Sequence[Reading]) -> None:
        subjects = stored_subjects(readings, self._streams)
        if subjects:
            self._streams.update(load_streams(cursor, self.schema, subjects))

    def _commit(self, batch: Batch) -> None:
        with self.connection, self.connection.cursor() as cursor:
            base = {Place(*place): self.positions.get(Place(*place), 0) for place in batch.tallies}
            advance(cursor, self.schema, self.state, self.log_id, base, batch.tallies)
            write_batch(cursor, self.schema, batch)

    def _settle(self, batch: Batch) -> None:
        """What was written is what is known."""
        for stream in batch.streams.values():
            stream.is_stored = True
        for (topic, partition), tally in batch.tallies.items():
            self.positions[Place(topic, partition)] = tally.next_offset
        self.num_rows += batch.rows.count
        if len(self._streams) > MAX_STREAMS:
            self._streams.clear()


def probe_with(cursor: Cursor, schema: str) -> Probe:
    """Writes events one by one, each in a savepoint."""

    def probe(operations: Sequence[Operation]) -> None:
        cursor.execute("SAVEPOINT event")
        try:
            write_operations(cursor, schema, operations)
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
        "SELECT stream, epoch, sequence, source, ends, refused, statuses, parked_since, abandoned, num_waiting, last_event_at "
        f'FROM "{schema}".stream_position WHERE stream = ANY(%s)',
        (list(subjects),),
    )
    assert cursor.description is not None  # noqa: S101  # a SELECT has columns
    names = [column.name for column in cursor.description]
    rows = [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]
    waiting = load_held(cursor, schema, [row["stream"] for row in rows if row["num_waiting"]], "waiting")
    return {row["stream"]: stored_stream(row, [held for held in waiting if held.stream == row["stream"]]) for row in rows}


def load_held(cursor: Cursor, schema: str, subjects: Sequence[str] | None, held_as: str) -> list[Held]:
    """What is held of these streams, in the log's order; None: what names no stream."""
    if subjects is not None and not subjects:
        return []
    cursor.execute(
        "SELECT log_id, topic, partition, log_offset, held_as, kind, reason, stream, key, value, appended_at, type IS NOT NULL AS readable "
        f'FROM "{schema}".held_record WHERE held_as = %s AND {"stream IS NULL" if subjects is None else "stream = ANY(%s)"} '
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
        held.append(Held(row["log_id"], record, row["held_as"], row["kind"], row["reason"], row["stream"], envelope))
    return held

"""Operators' decisions about held records: list them, try them again, give them up.

Every decision is one transaction, which running projectors notice. Trying again folds a stream's
parked records as if they had just been read; what still cannot be applied is parked again.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple
from uuid import uuid4

import psycopg2

from consumers.database.connection import Connection, Cursor
from consumers.errors import NotFoundError, UsageError
from consumers.fold.apply import Write
from consumers.fold.fold import Fold
from consumers.fold.held import Coordinates, Held, waiting_envelope
from consumers.fold.operator_drops import Drop, Scope, load_drops, store_drop, value_hash
from consumers.fold.parse import parse_record
from consumers.fold.projectors.registry import catalogue_hash
from consumers.fold.stream import Stream
from consumers.projection.positions import read_state
from consumers.projection.savepoints import is_refused, write_singly
from consumers.projection.stored import find_owned, load_held, load_streams
from consumers.projection.write import UnwritableError, batch_commands, execute


class Redriven(NamedTuple):
    """The result of trying again."""

    streams: int
    """Tried."""
    events: int
    """Applied."""
    still_parked: int
    """Records of these streams that are parked again."""


Decision = Callable[[Cursor, Write | None], Redriven]


class HeldSummary(NamedTuple):
    """A held record as a list shows it."""

    id: str
    """`topic/partition@offset`, as commands take it."""
    held_as: str
    kind: str
    reason: str
    stream: str | None
    type: str | None
    epoch: int | None
    sequence: int | None
    event_time: datetime | None
    appended_at: datetime


class Operator:
    """Decisions about one schema's held records. Not thread-safe; each call is one transaction."""

    def __init__(self, connection: Connection, schema: str) -> None:
        self._connection = connection
        self._schema = schema

    def list_held(self, held_as: str | None = None) -> list[HeldSummary]:
        """Everything that is held, by offset."""
        with self._connection, self._connection.cursor() as cursor:
            cursor.execute(
                "SELECT topic || '/' || partition || '@' || log_offset, held_as, kind, reason,"
                " stream, type, epoch, sequence, event_time, appended_at"
                f' FROM "{self._schema}".held_record WHERE held_as = coalesce(%s, held_as)'
                " ORDER BY topic, partition, log_offset",
                (held_as,),
            )
            return [HeldSummary(*row) for row in cursor.fetchall()]

    def show(self, record_id: str) -> tuple[HeldSummary, bytes]:
        """A held record and its value. NotFoundError, UsageError."""
        with self._connection, self._connection.cursor() as cursor:
            held = self._find(cursor, record_id)
        return _summary(record_id, held), held.record.value

    def redrive(self, streams: Sequence[str] | None = None) -> Redriven:
        """Try parked records again: of these streams, or all."""
        return self._decide(lambda cursor, write: self._redrive(cursor, streams, write))

    def redrive_if_newer(self) -> bool:
        """Redrive if this code knows other event types than the last; whether it did."""
        with self._connection, self._connection.cursor() as cursor:
            if read_state(cursor, self._schema).catalogue_hash == catalogue_hash():
                return False
        self.redrive()
        with self._connection, self._connection.cursor() as cursor:
            cursor.execute(
                f'UPDATE "{self._schema}".projection SET catalogue_hash = %s', (catalogue_hash(),)
            )
        return True

    def drop_record(
        self, record_id: str, *, rest: bool, made_by: str, reason: str | None
    ) -> Redriven:
        """Drop a parked record, or with `rest` its stream from it on, and redrive the stream.

        NotFoundError, UsageError.
        """

        def decide(cursor: Cursor, write: Write | None) -> Redriven:
            held = self._find(cursor, record_id)
            if held.held_as != "parked":
                message = (
                    f"{record_id} is {held.held_as}, not parked; to give up the gap that a stream"
                    " waits for, run `cua-project parked drop STREAM --gap`"
                )
                raise UsageError(message)
            if rest and held.stream is None:
                message = f"{record_id} names no stream, so it has no rest; drop it without --rest"
                raise UsageError(message)
            scope: Scope = "rest" if rest else "record"
            drop = Drop(scope, held.stream, value_hash(held.record.value), None)
            store_drop(cursor, drop, made_by=made_by, reason=reason)
            return self._redrive(cursor, None if held.stream is None else [held.stream], write)

        return self._decide(decide)

    def drop_gap(self, stream_name: str, *, made_by: str, reason: str | None) -> Redriven:
        """Give up the records that a stream waits for. NotFoundError, UsageError."""

        def decide(cursor: Cursor, write: Write | None) -> Redriven:
            stream = load_streams(cursor, self._schema, [stream_name]).get(stream_name)
            if stream is None or not stream.waiting:
                message = (
                    f"{stream_name} waits for no gap; `cua-project parked list --as waiting` shows"
                    " the streams that do"
                )
                raise NotFoundError(message)
            if stream.parked_since is not None:
                message = (
                    f"{stream_name} is parked; redrive or drop its parked record first, then the"
                    " gap"
                )
                raise UsageError(message)
            first = min(
                stream.waiting, key=lambda held: (waiting_envelope(held).point, held.record.offset)
            )
            drop = Drop("gap", stream_name, value_hash(first.record.value), stream.position.point)
            store_drop(cursor, drop, made_by=made_by, reason=reason)
            fold = self._fold(cursor, {stream_name: stream}, write)
            num_events = fold.release(stream)
            return self._finish(cursor, fold, streams=1, events=num_events)

        return self._decide(decide)

    def _decide(self, decision: Decision) -> Redriven:
        """Decide in one transaction; a second time event by event if the database refuses a row."""
        try:
            return self._locked(decision, singly=False)
        except (psycopg2.Error, UnwritableError) as error:
            if not is_refused(error):
                raise
        return self._locked(decision, singly=True)

    def _locked(self, decision: Decision, *, singly: bool) -> Redriven:
        with self._connection, self._connection.cursor() as cursor:
            # Blocks the projectors' compare-and-set; the new build id makes them load again.
            cursor.execute(f'LOCK TABLE "{self._schema}".reader_position IN EXCLUSIVE MODE')
            result = decision(cursor, write_singly(cursor, self._schema) if singly else None)
            cursor.execute(f'UPDATE "{self._schema}".projection SET build_id = %s', (str(uuid4()),))
            return result

    def _redrive(
        self, cursor: Cursor, streams: Sequence[str] | None, write: Write | None
    ) -> Redriven:
        cursor.execute(
            f'SELECT DISTINCT stream FROM "{self._schema}".held_record WHERE held_as = %s AND'
            " stream IS NOT NULL",
            ("parked",),
        )
        names = {row[0] for row in cursor.fetchall()}
        parked = sorted(names if streams is None else names & set(streams))
        records = load_held(cursor, self._schema, parked, "parked")
        if streams is None:
            records += load_held(cursor, self._schema, None, "parked")
        # A record that named no stream when it was read may name one to newer code.
        named = {
            parsed.stream
            for parsed in map(parse_record, (held.record for held in records))
            if parsed.stream is not None
        }
        known = load_streams(cursor, self._schema, sorted(named.union(parked)))
        for name in parked:
            known[name].parked_since = None
        fold = self._fold(cursor, known, write)
        num_events = fold.retry(records)
        return self._finish(cursor, fold, streams=len(parked), events=num_events)

    def _fold(self, cursor: Cursor, streams: dict[str, Stream], write: Write | None) -> Fold:
        log_id = read_state(cursor, self._schema).log_id or ""
        return Fold(
            streams,
            log_id=log_id,
            drops=load_drops(cursor),
            write=write,
            find_owned=partial(find_owned, cursor, self._schema),
        )

    def _finish(self, cursor: Cursor, fold: Fold, *, streams: int, events: int) -> Redriven:
        execute(cursor, batch_commands(self._schema, fold.batch))
        still_parked = sum(held.held_as == "parked" for held in fold.batch.held.values())
        return Redriven(streams, events, still_parked)

    def _find(self, cursor: Cursor, record_id: str) -> Held:
        """NotFoundError, UsageError."""
        partition_name, _, offset = record_id.rpartition("@")
        topic, _, partition = partition_name.rpartition("/")
        if not (topic and partition.isdecimal() and offset.isdecimal()):
            message = (
                f"{record_id!r} is not a record id; give topic/partition@offset, as `cua-project"
                " parked list` prints it"
            )
            raise UsageError(message)
        cursor.execute(
            f'SELECT log_id, stream, held_as FROM "{self._schema}".held_record WHERE topic = %s AND'
            " partition = %s AND log_offset = %s",
            (topic, int(partition), int(offset)),
        )
        row = cursor.fetchone()
        if row is None:
            message = (
                f"no record is held at {record_id}; `cua-project parked list` shows those that are"
            )
            raise NotFoundError(message)
        wanted = Coordinates(row[0], topic, int(partition), int(offset))
        held = load_held(cursor, self._schema, None if row[1] is None else [row[1]], row[2])
        return next(record for record in held if record.coordinates == wanted)


def _summary(record_id: str, held: Held) -> HeldSummary:
    envelope = held.envelope
    return HeldSummary(
        record_id,
        held.held_as,
        held.kind,
        held.reason,
        held.stream,
        None if envelope is None else envelope.type,
        None if envelope is None else envelope.epoch,
        None if envelope is None else envelope.sequence,
        None if envelope is None else envelope.time,
        held.record.appended_at,
    )

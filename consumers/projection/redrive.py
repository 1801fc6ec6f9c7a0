"""What is held, for operators: list it, try it again, give it up.

Every decision is one transaction that projectors notice.

Trying again folds a stream's parked records as if they had just been read; what still cannot be
applied is parked again.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import uuid4

import psycopg2

from consumers.database.connection import Connection, Cursor
from consumers.errors import NotFoundError, UsageError
from consumers.fold.fold import Fold, PartitionProgress, Probe, parse_record
from consumers.fold.held import Coordinates, Held, value_hash
from consumers.fold.operator_drops import Drop, Drops
from consumers.fold.projectors.registry import catalogue_hash
from consumers.fold.streams import Stream
from consumers.projection.operator_drops import load_drops, store_drop
from consumers.projection.positions import read_state
from consumers.projection.schema import (
    ProjectedSchema,
    is_refused,
    load_held,
    load_streams,
    probe_with,
)
from consumers.projection.write import batch_commands, execute

Work = Callable[[Cursor, Probe | None], "Redriven"]


class Redriven(NamedTuple):
    """What trying again came to."""

    streams: int
    """That were tried."""
    events: int
    """Applied now."""
    still_parked: int
    """Records that are parked after it, of the streams that were tried."""


class HeldSummary(NamedTuple):
    """A held record as a list shows it."""

    id: str
    """`topic/partition@offset`: what other commands take."""
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

    def list_held(self, held_as: str | None = None, limit: int | None = None) -> list[HeldSummary]:
        """Everything that is held, in the log's order."""
        with self._connection, self._connection.cursor() as cursor:
            cursor.execute(
                "SELECT topic || '/' || partition || '@' || log_offset, held_as, kind, reason,"
                " stream, type, epoch, sequence, event_time, "
                f'appended_at FROM "{self._schema}".held_record WHERE held_as = coalesce(%s,'
                " held_as) "
                "ORDER BY topic, partition, log_offset LIMIT %s",
                (held_as, limit),
            )
            return [HeldSummary(*row) for row in cursor.fetchall()]

    def show(self, record_id: str) -> tuple[HeldSummary, bytes]:
        """One held record and its value; NotFoundError when it is not held."""
        for summary in self.list_held():
            if summary.id == record_id:
                with self._connection, self._connection.cursor() as cursor:
                    return summary, self._find(cursor, record_id).record.value
        raise _not_held(record_id)

    def redrive(self, streams: Sequence[str] | None = None) -> Redriven:
        """Try parked records again: of these streams, or all."""
        return self._decide(lambda cursor, probe: self._redrive(cursor, streams, probe))

    def redrive_if_newer(self) -> bool:
        """Redrive when this code knows other event types than the code that ran last.

        Whether it did.
        """
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
        """Give up a parked record, or with `rest` everything of its stream from it on.

        What follows is tried.
        """

        def work(cursor: Cursor, probe: Probe | None) -> Redriven:
            held = self._find(cursor, record_id)
            if held.held_as != "parked":
                message = (
                    f"expected a parked record, found {record_id} {held.held_as}; a gap is given up"
                    " by its stream's name with --gap"
                )
                raise UsageError(message)
            if rest and held.stream is None:
                message = (
                    f"expected a record of a stream for --rest, found {record_id}, which names none"
                )
                raise UsageError(message)
            drop = Drop(
                "rest" if rest else "record", held.stream, value_hash(held.record.value), None
            )
            store_drop(cursor, drop, made_by=made_by, reason=reason)
            return self._redrive(cursor, None if held.stream is None else [held.stream], probe)

        return self._decide(work)

    def drop_gap(self, stream_name: str, *, made_by: str, reason: str | None) -> Redriven:
        """Give up the records that a stream waits for; NotFoundError when it waits for none."""

        def work(cursor: Cursor, probe: Probe | None) -> Redriven:
            stream = load_streams(cursor, self._schema, [stream_name]).get(stream_name)
            if stream is None or not stream.waiting:
                message = (
                    f"expected a stream with a gap, found {stream_name} waiting for nothing;"
                    " `cua-project parked list` names them"
                )
                raise NotFoundError(message)
            if stream.parked_since is not None:
                message = (
                    f"expected a stream that is not parked, found {stream_name} parked; redrive or"
                    " drop what is parked first"
                )
                raise UsageError(message)
            first = min(
                stream.waiting,
                key=lambda held: (
                    held.envelope.point if held.envelope else (0, 0),
                    held.record.offset,
                ),
            )
            drop = Drop("gap", stream_name, value_hash(first.record.value), stream.position.point)
            store_drop(cursor, drop, made_by=made_by, reason=reason)
            fold = self._fold(cursor, {stream_name: stream}, probe)
            progress = PartitionProgress(0, None)
            fold.release(stream, progress)
            execute(cursor, batch_commands(self._schema, fold.batch))
            return Redriven(
                1,
                progress.num_events,
                sum(held.held_as == "parked" for held in fold.batch.held.values()),
            )

        return self._decide(work)

    def _decide(self, work: Work) -> Redriven:
        """One transaction, alone with the state.

        A second time event by event when the database refuses some row.
        """
        try:
            return self._locked(work, singly=False)
        except psycopg2.Error as error:
            if not is_refused(error):
                raise
        return self._locked(work, singly=True)

    def _locked(self, work: Work, *, singly: bool) -> Redriven:
        with self._connection, self._connection.cursor() as cursor:
            # Holds the projectors' compare-and-set back; the new build id tells them afterwards.
            cursor.execute(f'LOCK TABLE "{self._schema}".reader_position IN EXCLUSIVE MODE')
            result = work(cursor, probe_with(cursor, self._schema) if singly else None)
            cursor.execute(f'UPDATE "{self._schema}".projection SET build_id = %s', (str(uuid4()),))
            return result

    def _redrive(
        self, cursor: Cursor, streams: Sequence[str] | None, probe: Probe | None
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
        fold = self._fold(cursor, known, probe)
        progress = PartitionProgress(0, None)
        for held in records:
            fold.retry(held, progress)
        execute(cursor, batch_commands(self._schema, fold.batch))
        return Redriven(
            len(parked),
            progress.num_events,
            sum(held.held_as == "parked" for held in fold.batch.held.values()),
        )

    def _fold(self, cursor: Cursor, streams: dict[str, Stream], probe: Probe | None) -> Fold:
        drops: Drops = load_drops(cursor)
        return Fold(streams, drops, read_state(cursor, self._schema).log_id or "", probe=probe)

    def _find(self, cursor: Cursor, record_id: str) -> Held:
        place, _, offset = record_id.rpartition("@")
        topic, _, partition = place.rpartition("/")
        if not (topic and partition.isdecimal() and offset.isdecimal()):
            message = (
                f"expected a record as topic/partition@offset, found {record_id!r}; `cua-project"
                " parked list` names them"
            )
            raise UsageError(message)
        cursor.execute(
            f'SELECT log_id, stream, held_as FROM "{self._schema}".held_record WHERE topic = %s AND'
            " partition = %s AND log_offset = %s",
            (topic, int(partition), int(offset)),
        )
        row = cursor.fetchone()
        if row is None:
            raise _not_held(record_id)
        wanted = Coordinates(row[0], topic, int(partition), int(offset))
        held = load_held(cursor, self._schema, None if row[1] is None else [row[1]], row[2])
        return next(record for record in held if record.coordinates == wanted)


def _not_held(record_id: str) -> NotFoundError:
    return NotFoundError(
        f"expected a held record, found none at {record_id}; `cua-project parked list` names them"
    )


def redrive_if_newer(schema: ProjectedSchema) -> bool:
    """As `Operator.redrive_if_newer`, for the projector that starts."""
    return Operator(schema.connection, schema.schema).redrive_if_newer()

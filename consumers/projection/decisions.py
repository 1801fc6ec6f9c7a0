"""Operators' decisions about records that are not applied, before they are in the log.

Reads the tables and changes nothing. A decision takes effect where the log's readers meet it.
"""

from contextlib import suppress
from typing import NamedTuple
from uuid import UUID

from consumers.database.connection import Cursor
from consumers.errors import NotFoundError, UsageError
from consumers.fold.parse import stream_of_key
from consumers.fold.stream import Stream
from consumers.fold.unapplied import Unapplied
from consumers.projection.stored import load_streams
from consumers.projection.unapplied_filter import UnappliedFilter
from consumers.projection.unapplied_records import (
    PART_RECORDS,
    find_unapplied,
    streams_of,
    unapplied_page,
)
from consumers.tables import SCHEMA
from schemas.base import Payload
from schemas.catalogue import stream_kind, stream_owner
from schemas.decision import DropUndone, GapDropped, RecordDropped, RestDropped, value_hash
from schemas.wire import UnreadableError, read_envelope

OWNERS = {
    "rollout": f"SELECT training_id FROM {SCHEMA}.rollout WHERE id = %(owner)s",
    "environment": f"SELECT training_id FROM {SCHEMA}.environment WHERE id = %(owner)s",
    "scoring": f"SELECT training_id FROM {SCHEMA}.scoring WHERE id = %(owner)s",
    "evaluation": (
        f"SELECT training_id FROM {SCHEMA}.eval WHERE id = %(owner)s UNION ALL SELECT training_id"
        f" FROM {SCHEMA}.baseline WHERE id = %(owner)s"
    ),
}
"""Kind of stream -> the training of its owner's row."""
BEHIND = "behind"
"""The kind of records that are not applied only because one before them is not."""
CULPRITS = f"kind <> '{BEHIND}'"
"""SQL that leaves them out."""


class Decision(NamedTuple):
    """A decision that is to be appended to the log."""

    stream: str
    training_id: UUID | None
    """None: the stream's training is not known."""
    payload: Payload


def drop_record(
    cursor: Cursor, record_id: str, *, rest: bool, made_by: str, reason: str | None
) -> Decision:
    """To drop a parked record, or with `rest` its stream from it on. NotFoundError, UsageError."""
    unapplied = find_unapplied(cursor, SCHEMA, record_id)
    if unapplied.kind == "foreign":
        message = (
            f"{record_id} is in no stream, because another program chose its place: nothing waits"
            " for it, so there is nothing to drop"
        )
        raise UsageError(message)
    if unapplied.state != "parked":
        message = (
            f"{record_id} is {unapplied.state}, not parked; to give up the gap that a stream waits"
            " for, run `cua-project parked drop STREAM --gap`"
        )
        raise UsageError(message)
    if unapplied.kind == BEHIND:
        message = (
            f"{record_id} is only behind a parked record of {unapplied.stream}; drop that one, or"
            f" run `cua-project parked retry {unapplied.stream}`"
        )
        raise UsageError(message)
    return _drop(cursor, unapplied, rest=rest, made_by=made_by, reason=reason)


def drop_gap(cursor: Cursor, stream_name: str, *, made_by: str, reason: str | None) -> Decision:
    """To give up the records that a stream waits for. NotFoundError, UsageError."""
    stream = _load(cursor, stream_name)
    if stream is not None and stream.parked_since is not None:
        message = f"{stream_name} is parked; retry or drop its parked record first, then the gap"
        raise UsageError(message)
    if stream is None or not stream.waiting:
        message = (
            f"{stream_name} waits for no gap; `cua-project parked list --state waiting` shows the"
            " streams that do"
        )
        raise NotFoundError(message)
    epoch, sequence = stream.position.point
    payload = GapDropped(from_epoch=epoch, from_sequence=sequence, made_by=made_by, reason=reason)
    return Decision(stream_name, training_of(cursor, stream_name), payload)


def undo_rest(cursor: Cursor, stream_name: str, *, made_by: str, reason: str | None) -> Decision:
    """To take back `drop --rest`, also one without effect. NotFoundError when there is none."""
    stream = _load(cursor, stream_name)
    dropped_as = {} if stream is None else {how: hash_ for hash_, how in stream.drops.items()}
    dropped = dropped_as.get("dropped") or dropped_as.get("rest")
    if dropped is None:
        message = (
            f"the rest of {stream_name} is not dropped, or that decision is not read yet;"
            " `cua-project parked list --state refused --kind dropped` shows the streams whose rest"
            " is"
        )
        raise NotFoundError(message)
    payload = DropUndone(value_sha256=dropped, made_by=made_by, reason=reason)
    return Decision(stream_name, training_of(cursor, stream_name), payload)


def undo_matching(
    cursor: Cursor, wanted: UnappliedFilter, *, made_by: str, reason: str | None
) -> list[Decision]:
    """To take back `drop --rest` of every stream whose first refused record is meant."""
    streams = streams_of(cursor, SCHEMA, dropped_rests(wanted))
    return [undo_rest(cursor, stream, made_by=made_by, reason=reason) for stream in streams]


def dropped_rests(wanted: UnappliedFilter) -> UnappliedFilter:
    """The records that `drop --rest` named, one of each stream."""
    return wanted._replace(state="refused", kind="dropped")


def _load(cursor: Cursor, stream_name: str) -> Stream | None:
    """None: the tables do not have it. UsageError for what names no stream."""
    if stream_of_key(stream_name) is None:
        message = (
            f"{stream_name!r} is not a stream, such as rollout/<uuid>; `cua-project parked list`"
            " shows each record's"
        )
        raise UsageError(message)
    return load_streams(cursor, SCHEMA, [stream_name]).get(stream_name)


def drop_matching(
    cursor: Cursor, wanted: UnappliedFilter, *, rest: bool, made_by: str, reason: str | None
) -> list[Decision]:
    """To drop every parked record that is meant now; a stream's next one may park then."""
    parked = wanted._replace(state="parked")
    decisions, after = [], None
    while True:
        page, after = unapplied_page(
            cursor, SCHEMA, parked, after, PART_RECORDS, condition=CULPRITS
        )
        for item in page:
            unapplied = find_unapplied(cursor, SCHEMA, item.id)
            decisions.append(_drop(cursor, unapplied, rest=rest, made_by=made_by, reason=reason))
        if after is None:
            return decisions


def _drop(
    cursor: Cursor, unapplied: Unapplied, *, rest: bool, made_by: str, reason: str | None
) -> Decision:
    payload = (RestDropped if rest else RecordDropped)(
        value_sha256=value_hash(unapplied.record.value), made_by=made_by, reason=reason
    )
    return Decision(unapplied.stream, training_of(cursor, unapplied.stream), payload)


def training_of(cursor: Cursor, stream: str) -> UUID | None:
    """The training of a stream, as its records or its rows name it; None: it has none."""
    kind, owner = stream_kind(stream), stream_owner(stream)
    if kind in {"training", "annotation"}:
        return owner
    cursor.execute(
        f"SELECT value FROM {SCHEMA}.unapplied_record WHERE stream = %s AND type IS NOT NULL"
        " ORDER BY appended_at LIMIT 1",
        (stream,),
    )
    for (value,) in cursor.fetchall():
        with suppress(UnreadableError):
            training_id = read_envelope(bytes(value)).training_id
            if training_id is not None:
                return training_id
    if kind in OWNERS:
        cursor.execute(OWNERS[kind], {"owner": str(owner)})
        for (training,) in cursor.fetchall():
            return None if training is None else UUID(str(training))
    return None

"""Reads stream states and records that are not applied from a projected schema."""

from collections.abc import Sequence

from consumers.database.connection import Cursor
from consumers.fold.ownership import Entity
from consumers.fold.stream import Stream, stored_stream
from consumers.fold.unapplied import Unapplied, UnappliedState, record_of
from schemas.event import Envelope
from schemas.wire import UnreadableError, read_envelope

UNAPPLIED_COLUMNS = (
    "log_id, topic, partition, log_offset, state, kind, reason, stream, key, value, appended_at,"
    " type IS NOT NULL AS readable"
)
"""What `unapplied_records` reads."""


def load_streams(cursor: Cursor, schema: str, subjects: Sequence[str]) -> dict[str, Stream]:
    """The stored states of these streams, with their waiting records."""
    cursor.execute(
        "SELECT stream, epoch, sequence, source, ends, refused, statuses, parked_since, dropped,"
        f' drops, num_waiting, last_event_at FROM "{schema}".stream_position WHERE stream ='
        " ANY(%s)",
        (list(subjects),),
    )
    rows = _rows(cursor)
    with_waiting = [str(row["stream"]) for row in rows if row["num_waiting"]]
    waiting: dict[str | None, list[Unapplied]] = {}
    for unapplied in load_unapplied(cursor, schema, with_waiting, "waiting"):
        waiting.setdefault(unapplied.stream, []).append(unapplied)
    return {
        name: stored_stream(row, waiting.get(name, ()))
        for row in rows
        for name in [str(row["stream"])]
    }


EFFECTIVE = frozenset({"passed", "dropped"})
"""Scopes of drops that have changed what is applied of a stream."""


def load_dropped(cursor: Cursor, schema: str) -> dict[str, list[str]]:
    """Stream -> hashes of the values that it passed over, or from which on it is dropped."""
    cursor.execute(f"SELECT stream, drops FROM \"{schema}\".stream_position WHERE drops <> '{{}}'")
    return {
        stream: [hash_ for hash_, scope in drops.items() if scope in EFFECTIVE]
        for stream, drops in cursor.fetchall()
    }


OWNED = {
    ("training", "step"): (
        "SELECT id::text, status FROM {schema}.step WHERE id = ANY(%s::uuid[]) AND training_id = %s"
    ),
    ("training", "group"): (
        'SELECT "group".id::text, "group".status FROM {schema}."group" JOIN {schema}.step ON'
        ' step.id = "group".step_id WHERE "group".id = ANY(%s::uuid[]) AND step.training_id = %s'
    ),
    ("evaluation", "group"): (
        'SELECT id::text, status FROM {schema}."group" WHERE id = ANY(%s::uuid[]) AND'
        " coalesce(eval_id, baseline_id) = %s"
    ),
}
"""(kind of stream, table) -> which of these ids the stream with this owner has created.

A row is there only if its own stream has made it, because its id hashes the owner."""


def find_owned(
    cursor: Cursor, schema: str, stream: Stream, entities: Sequence[Entity]
) -> dict[Entity, str]:
    """Those of these entities that the stream has created, with their status."""
    found: dict[Entity, str] = {}
    kind = stream.subject.partition("/")[0]
    for table in sorted({entity.table for entity in entities}):
        statement = OWNED.get((kind, table))
        if statement is not None:
            wanted = [entity.id for entity in entities if entity.table == table]
            cursor.execute(statement.format(schema=f'"{schema}"'), (wanted, stream.owner))
            found |= {Entity(table, id_): status for id_, status in cursor.fetchall()}
    return found


def load_unapplied(
    cursor: Cursor, schema: str, subjects: Sequence[str], state: UnappliedState
) -> list[Unapplied]:
    """The records of these streams in one state, by offset."""
    if not subjects:
        return []
    cursor.execute(
        f'SELECT {UNAPPLIED_COLUMNS} FROM "{schema}".unapplied_record WHERE state = %s AND stream ='
        " ANY(%s) ORDER BY topic, partition, log_offset",
        (state, list(subjects)),
    )
    return unapplied_records(cursor)


def unapplied_records(cursor: Cursor, limit: int | None = None) -> list[Unapplied]:
    """The records of a query that selects UNAPPLIED_COLUMNS; with `limit` the next ones."""
    return [_unapplied(row) for row in _rows(cursor, limit)]


def _rows(cursor: Cursor, limit: int | None = None) -> list[dict[str, object]]:
    found = cursor.fetchall() if limit is None else cursor.fetchmany(limit)
    assert cursor.description is not None  # noqa: S101  # a SELECT has columns
    names = [column.name for column in cursor.description]
    return [dict(zip(names, values, strict=True)) for values in found]


def _unapplied(row: dict[str, object]) -> Unapplied:
    record = record_of(row)
    envelope = _envelope(record.value) if row["readable"] else None
    log_id, state, kind, reason, stream = (
        row[name] for name in ("log_id", "state", "kind", "reason", "stream")
    )
    return Unapplied(log_id, record, state, kind, reason, stream, envelope)  # type: ignore[arg-type]  # column types


def _envelope(value: bytes) -> Envelope | None:
    """None: code that read less strictly has stored it."""
    try:
        return read_envelope(value)
    except UnreadableError:
        return None

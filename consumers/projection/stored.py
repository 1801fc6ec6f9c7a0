"""Reads stream states and held records back from a projected schema."""

from collections.abc import Sequence

from consumers.database.connection import Cursor
from consumers.fold.held import Held, HeldAs, record_of
from consumers.fold.stream import Stream, stored_stream
from schemas.wire import read_envelope

HELD_COLUMNS = (
    "log_id, topic, partition, log_offset, held_as, kind, reason, stream, key, value, appended_at,"
    " type IS NOT NULL AS readable"
)
"""What `held_records` reads."""


def load_streams(cursor: Cursor, schema: str, subjects: Sequence[str]) -> dict[str, Stream]:
    """The stored states of these streams, with their waiting records."""
    cursor.execute(
        "SELECT stream, epoch, sequence, source, ends, refused, statuses, parked_since, abandoned,"
        f' num_waiting, last_event_at FROM "{schema}".stream_position WHERE stream = ANY(%s)',
        (list(subjects),),
    )
    rows = _rows(cursor)
    with_waiting = [str(row["stream"]) for row in rows if row["num_waiting"]]
    waiting = load_held(cursor, schema, with_waiting, "waiting")
    return {
        str(row["stream"]): stored_stream(
            row, [held for held in waiting if held.stream == row["stream"]]
        )
        for row in rows
    }


def load_held(
    cursor: Cursor, schema: str, subjects: Sequence[str] | None, held_as: HeldAs
) -> list[Held]:
    """Held records of these streams, by offset; None: records that name no stream."""
    if subjects is not None and not subjects:
        return []
    cursor.execute(
        f'SELECT {HELD_COLUMNS} FROM "{schema}".held_record WHERE held_as = %s'
        f" AND {'stream IS NULL' if subjects is None else 'stream = ANY(%s)'}"
        " ORDER BY topic, partition, log_offset",
        (held_as,) if subjects is None else (held_as, list(subjects)),
    )
    return held_records(cursor)


def held_records(cursor: Cursor) -> list[Held]:
    """The records of a query that selects HELD_COLUMNS."""
    return [_held(row) for row in _rows(cursor)]


def _rows(cursor: Cursor) -> list[dict[str, object]]:
    assert cursor.description is not None  # noqa: S101  # a SELECT has columns
    names = [column.name for column in cursor.description]
    return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]


def _held(row: dict[str, object]) -> Held:
    record = record_of(row)
    envelope = read_envelope(record.value) if row["readable"] else None
    log_id, held_as, kind, reason, stream = (
        row[name] for name in ("log_id", "held_as", "kind", "reason", "stream")
    )
    return Held(log_id, record, held_as, kind, reason, stream, envelope)  # type: ignore[arg-type]  # column types

"""The operations of the fold, applied in memory: what each event does to rows, without a database.

Values are as plain as those of the reference fold (`tests.reference_fold.comparison.plain`).
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from consumers.fold.fold import Fold
from consumers.fold.parse import parse_record
from consumers.fold.rows import (
    Insert,
    Operation,
    Row,
    Update,
    Upsert,
)
from consumers.fold.stream import Stream, new_stream
from consumers.log.reader import LogRecord
from consumers.projection.copying import TABLES, json_text
from tests.reference_fold.comparison import plain
from tests.reference_fold.writers import LoggedEvent

APPENDED = datetime(2026, 3, 1, tzinfo=UTC)


class Effect(NamedTuple):
    """One event and what the fold makes of it."""

    type: str
    subject: str
    operations: tuple[Operation, ...]


def effects(events: Iterable[LoggedEvent]) -> Iterator[Effect]:
    """Each event's operations, in order; an event that is parked has none."""
    streams: dict[str, Stream] = {}
    for offset, one in enumerate(events):
        found: list[Operation] = []
        streams.setdefault(one.subject, new_stream(one.subject))
        record = LogRecord("memory", 0, offset, one.subject, one.value, APPENDED)
        fold = Fold(streams, log_id="memory", write=found.extend)
        fold.take_all([parse_record(record)])
        yield Effect(json.loads(one.value)["type"], one.subject, tuple(found))


def _column(table: str, name: str, value: object) -> Any:
    """A value as the database shows it."""
    if value is None:
        return None
    kind = TABLES[table].by_name[name].type
    if kind == "jsonb":
        return json.loads(json_text(value))
    if kind == "timestamptz":
        time = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        return plain(time)
    return str(value) if isinstance(value, UUID) else plain(value)


def _row(table: str, row: Row) -> dict[str, Any]:
    columns = {name: _column(table, name, value) for name, value in row.items()}
    return {name: value for name, value in columns.items() if value is not None}


def apply(tables: dict[str, dict[str, dict[str, Any]]], operations: Sequence[Operation]) -> None:
    """Change the tables; columns that are NULL are absent."""
    for operation in operations:
        match operation:
            case Insert(table, row):
                tables[table][str(row["id"])] = _row(table, row)
            case Update(table, key, values):
                if (known := tables[table].get(key)) is not None:
                    for name in values:
                        known.pop(name, None)
                    known.update(_row(table, values))
            case Upsert(table, row):
                new = _row(table, row)
                old = tables[table].setdefault(str(row["id"]), new)
                kept = {name: old[name] for name in ("created_at", "updated_at") if name in old}
                tables[table][str(row["id"])] = old = new | kept
                old["created_at"] = min(old["created_at"], new["created_at"])
                if "updated_at" in new:
                    old["updated_at"] = max(old["updated_at"], new["updated_at"])

"""One batch as SQL: new rows by COPY, changes by one UPDATE per set of columns.

Commands are built before they are executed, so that one batch is built while another commits. New
rows cannot exist yet (see `projectors.projector`), so COPY, the cheapest statement, serves the live
projection too.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import NamedTuple

from consumers.database.connection import Cursor
from consumers.fold.fold import FoldedBatch
from consumers.fold.rows import Insert, Operation, Row, Rows, Update, Upsert
from consumers.fold.stream import Stream
from consumers.fold.unapplied import Coordinates
from consumers.projection.copying import TABLES, copy_text, json_text

COPY_CHUNK = 1 << 16
"""Bytes per call to libpq."""


class UnwritableError(Exception):
    """Rows that no statement can contain: a number of too many digits, text without an encoding."""


class Command(NamedTuple):
    """One statement and its data, serialised."""

    statement: str
    is_copy: bool
    data: str
    """COPY's input, or the one parameter, a JSON array of rows."""


def execute(cursor: Cursor, commands: Iterable[Command]) -> None:
    """Execute in the caller's transaction. psycopg2's errors, UnwritableError."""
    for command in commands:
        try:
            if command.is_copy:
                # Encoded here: psycopg2 would report a failure to encode as a cancelled query.
                data = BytesIO(command.data.encode())
                cursor.copy_expert(command.statement, data, COPY_CHUNK)
            else:
                cursor.execute(command.statement, (command.data,))
        except ValueError as error:
            raise UnwritableError(str(error)) from error


def batch_commands(schema: str, batch: FoldedBatch) -> list[Command]:
    """Rows, stream states, what is not applied; not the reader's position. UnwritableError."""
    with _unwritable():
        return [
            *row_commands(schema, batch.rows),
            *stream_commands(schema, batch.streams.values()),
            *released_commands(schema, batch.released),
            *copy_commands(
                schema, "unapplied_record", (one.row() for one in batch.unapplied.values())
            ),
        ]


@contextmanager
def _unwritable() -> Iterator[None]:
    """UnwritableError for whatever serialising rows raises: their values come from a record."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        raise UnwritableError(message) from error


def row_commands(schema: str, rows: Rows) -> list[Command]:
    """Every row, tables and keys in a fixed order so that two writers cannot deadlock."""
    commands: list[Command] = []
    for table, upserts in sorted(rows.upserts.items()):
        commands += upsert_commands(schema, table, upserts)
    for table in sorted(rows.inserts):
        commands += copy_commands(schema, table, rows.inserts[table].values())
    for table in sorted(rows.changes):
        commands += update_commands(schema, table, rows.changes[table])
    return commands


def copy_commands(schema: str, table: str, rows: Iterable[Row]) -> list[Command]:
    """COPY new rows; no rows, no command."""
    text = copy_text(table, rows)
    return (
        [
            Command(
                f'COPY "{schema}"."{table}" ({TABLES[table].names}) FROM STDIN',
                is_copy=True,
                data=text,
            )
        ]
        if text
        else []
    )


def update_commands(
    schema: str, table: str, rows: dict[str, Row], key: str = "id"
) -> list[Command]:
    """Update columns of existing rows; a missing row stays missing."""
    if not rows:
        return []
    by_columns: dict[tuple[str, ...], list[Row]] = {}
    for row_key in sorted(rows):
        values = rows[row_key]
        by_columns.setdefault(tuple(sorted(values)), []).append({key: row_key} | values)
    columns = TABLES[table].by_name
    commands = []
    for names, changed in by_columns.items():
        assignments = ", ".join(f'"{name}" = new."{name}"' for name in names)
        record = ", ".join(f'"{name}" {columns[name].type}' for name in (key, *names))
        statement = (
            f'UPDATE "{schema}"."{table}" AS old SET {assignments} FROM json_to_recordset(%s::json)'
            f' AS new ({record}) WHERE old."{key}" = new."{key}"'
        )
        commands.append(Command(statement, is_copy=False, data=json_text(changed)))
    return commands


def upsert_commands(schema: str, table: str, rows: dict[str, Row]) -> list[Command]:
    """Content-addressed rows; of an existing one the times change (minimum, maximum)."""
    if not rows:
        return []
    columns = TABLES[table]
    record = ", ".join(f'"{column.name}" {column.type}' for column in columns.columns)
    merged = {
        column.name: f'excluded."{column.name}"'
        for column in columns.columns
        if column.name != "id"
    } | {
        name: f"{merge}(old.{name}, excluded.{name})"
        for name, merge in (("created_at", "LEAST"), ("updated_at", "GREATEST"))
        if name in columns.by_name
    }
    sets = ", ".join(f'"{name}" = {value}' for name, value in merged.items())
    news = " OR ".join(f'old."{name}" IS DISTINCT FROM {value}' for name, value in merged.items())
    statement = (
        f'INSERT INTO "{schema}"."{table}" AS old ({columns.names}) SELECT {columns.names} '
        f"FROM json_to_recordset(%s::json) AS new ({record}) ON CONFLICT (id) DO UPDATE SET"
        f" {sets} WHERE {news}"
    )
    data = json_text([rows[key] for key in sorted(rows)])
    return [Command(statement, is_copy=False, data=data)]


def stream_commands(schema: str, streams: Iterable[Stream]) -> list[Command]:
    """Stream states: new ones by COPY, stored ones by UPDATE."""
    new, known = [], {}
    for stream in streams:
        if stream.is_stored:
            row = stream.row()
            known[str(row.pop("stream"))] = row
        else:
            new.append(stream.row())
    return copy_commands(schema, "stream_position", new) + update_commands(
        schema, "stream_position", known, key="stream"
    )


def released_commands(schema: str, released: Iterable[Coordinates]) -> list[Command]:
    """Delete records that no longer count as not applied."""
    keys = [key._asdict() for key in sorted(released)]
    if not keys:
        return []
    statement = (
        f'DELETE FROM "{schema}".unapplied_record AS old USING json_to_recordset(%s::json) AS gone'
        ' (log_id text, topic text, partition integer, "offset" bigint) WHERE (old.log_id,'
        " old.topic, old.partition, old.log_offset) = (gone.log_id, gone.topic, gone.partition,"
        ' gone."offset")'
    )
    return [Command(statement, is_copy=False, data=json_text(keys))]


def operation_commands(schema: str, operations: Sequence[Operation]) -> list[Command]:
    """One event's operations. UnwritableError."""
    commands: list[Command] = []
    with _unwritable():
        for operation in operations:
            match operation:
                case Insert(table, row):
                    commands += copy_commands(schema, table, [row])
                case Update(table, key, values):
                    commands += update_commands(schema, table, {key: values})
                case Upsert(table, row):
                    commands += upsert_commands(schema, table, {str(row["id"]): row})
    return commands

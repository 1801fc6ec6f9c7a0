"""One batch into PostgreSQL: new rows by COPY, changes by one UPDATE per set of columns, inside the caller's transaction.

New rows cannot exist yet (see `projectors.projector`), so that the cheapest statement there is serves live as in a rebuild.
"""

from collections.abc import Iterable, Sequence
from io import StringIO

from psycopg2.extensions import cursor as Cursor  # noqa: N812  # psycopg2 names its class in lower case

from consumers.copying import TABLES, copy_text, json_text
from consumers.fold import Batch
from consumers.held import Coordinates
from consumers.projectors.projector import Change, Insert, Operation, Row, Statement
from consumers.rows import Rows
from consumers.streams import Stream

COPY_CHUNK = 1 << 16
"""Characters that libpq gets at once."""


def write_batch(cursor: Cursor, schema: str, batch: Batch) -> None:
    """Rows, stream states and held records; not the reader's position."""
    write_rows(cursor, schema, batch.rows)
    write_streams(cursor, schema, batch.streams.values())
    delete_held(cursor, schema, batch.released)
    copy_rows(cursor, schema, "held_record", (held.row() for held in batch.held.values()))


def write_rows(cursor: Cursor, schema: str, rows: Rows) -> None:
    """Every row, by table in one order and within it by key: two writers cannot deadlock."""
    for table in sorted(rows.statements):
        state_rows(cursor, schema, table, rows.statements[table])
    for table in sorted(rows.inserts):
        copy_rows(cursor, schema, table, rows.inserts[table].values())
    for table in sorted(rows.changes):
        change_rows(cursor, schema, table, rows.changes[table])


def copy_rows(cursor: Cursor, schema: str, table: str, rows: Iterable[Row]) -> None:
    """New rows."""
    text = copy_text(table, rows)
    if text:
        cursor.copy_expert(f'COPY "{schema}"."{table}" ({TABLES[table].names}) FROM STDIN', StringIO(text), COPY_CHUNK)


def change_rows(cursor: Cursor, schema: str, table: str, rows: dict[str, Row], key: str = "id") -> None:
    """Columns of rows that are there; rows that are not stay absent."""
    by_columns: dict[tuple[str, ...], list[Row]] = {}
    for row_key in sorted(rows):
        values = rows[row_key]
        by_columns.setdefault(tuple(sorted(values)), []).append({key: row_key} | values)
    columns = TABLES[table].by_name
    for names, changed in by_columns.items():
        assignments = ", ".join(f'"{name}" = new."{name}"' for name in names)
        record = ", ".join(f'"{name}" {columns[name].type}' for name in (key, *names))
        cursor.execute(
            f'UPDATE "{schema}"."{table}" AS old SET {assignments} FROM json_to_recordset(%s::json) AS new ({record}) '
            f'WHERE old."{key}" = new."{key}"',
            (json_text(changed),),
        )


def state_rows(cursor: Cursor, schema: str, table: str, rows: dict[str, Row]) -> None:
    """Content-addressed rows; of a known one the times alone move, outwards."""
    columns = TABLES[table]
    record = ", ".join(f'"{column.name}" {column.type}' for column in columns.columns)
    times = {"created_at": "LEAST", "updated_at": "GREATEST"}
    sets = [f"{name} = {merge}(old.{name}, excluded.{name})" for name, merge in times.items() if name in columns.by_name]
    news = " OR ".join(f"old.{name} <> {merge}(old.{name}, excluded.{name})" for name, merge in times.items() if name in columns.by_name)
    cursor.execute(
        f'INSERT INTO "{schema}"."{table}" AS old ({columns.names}) SELECT {columns.names} '
        f"FROM json_to_recordset(%s::json) AS new ({record}) ON CONFLICT (id) DO UPDATE SET {', '.join(sets)} WHERE {news}",
        (json_text([rows[key] for key in sorted(rows)]),),
    )


def write_streams(cursor: Cursor, schema: str, streams: Iterable[Stream]) -> None:
    """Stream states: new ones copied, known ones changed."""
    new, known = [], {}
    for stream in streams:
        if stream.is_stored:
            row = stream.row()
            known[str(row.pop("stream"))] = row
        else:
            new.append(stream.row())
    copy_rows(cursor, schema, "stream_position", new)
    if known:
        change_rows(cursor, schema, "stream_position", known, key="stream")


def delete_held(cursor: Cursor, schema: str, released: Iterable[Coordinates]) -> None:
    """Records that are no longer held."""
    keys = [key._asdict() for key in sorted(released)]
    if keys:
        cursor.execute(
            f'DELETE FROM "{schema}".held_record AS held USING json_to_recordset(%s::json) '
            'AS gone (log_id text, topic text, partition integer, "offset" bigint) WHERE (held.log_id, held.topic, held.partition, '
            'held.log_offset) = (gone.log_id, gone.topic, gone.partition, gone."offset")',
            (json_text(keys),),
        )


def write_operations(cursor: Cursor, schema: str, operations: Sequence[Operation]) -> None:
    """One event's operations, written at once."""
    for operation in operations:
        match operation:
            case Insert(table, row):
                copy_rows(cursor, schema, table, [row])
            case Change(table, key, values):
                change_rows(cursor, schema, table, {key: values})
            case Statement(table, row):
                state_rows(cursor, schema, table, {str(row["id"]): row})

"""Canonical hashes of rows and tables, independent of the database and the order of the rows.

A row's text lists its columns by name, with times in UTC, floats as the shortest text that reads
back and documents as jsonb writes them (`connection.SETTINGS`). A table's hash is the sums, modulo
2^64, of both halves of its rows' md5: it finds accidents and edits, not forgeries.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import NamedTuple
from uuid import uuid4

from consumers.database.connection import Connection, Cursor, connected
from consumers.projection.copying import TABLES
from consumers.tables import ROW_TABLES

NAMES = tuple(str(table.__tablename__) for table in ROW_TABLES)
"""The tables that are compared."""
FETCH_ROWS = 5_000


class TableHash(NamedTuple):
    """Number of rows and hash of a table."""

    rows: int
    hash: str


def row_text(table: str) -> str:
    """SQL of a row's canonical text; the columns must be visible without a prefix."""
    names = ", ".join(f'"{name}"' for name in sorted(TABLES[table].by_name))
    return f"ROW({names})::text"


def hash_tables(cursor: Cursor, schema: str, names: Iterable[str] = NAMES) -> dict[str, TableHash]:
    """The tables' hashes, in the cursor's snapshot."""
    return {name: hash_table(cursor, schema, name) for name in names}


def hash_table(cursor: Cursor, schema: str, table: str) -> TableHash:
    """One table's hash."""
    halves = ", ".join(
        f"coalesce(sum(('x' || substr(hash, {start}, 16))::bit(64)::bigint::numeric), 0)"
        for start in (1, 17)
    )
    cursor.execute(
        f"SELECT count(*), {halves} FROM (SELECT md5({row_text(table)}) AS hash FROM"
        f' "{schema}"."{table}") AS hashed'
    )
    row = cursor.fetchone()
    assert row is not None  # noqa: S101  # an aggregate has one row
    rows, *sums = row
    return TableHash(rows, "".join(f"{int(half) % (1 << 64):016x}" for half in sums))


def count_rows(url: str, schema: str) -> dict[str, int]:
    """Number of rows of every table."""
    rows = {}
    with connected(url, "count rows") as connection, connection.cursor() as cursor:
        for name in NAMES:
            cursor.execute(f'SELECT count(*) FROM "{schema}"."{name}"')
            rows[name] = int((cursor.fetchone() or (0,))[0])
    return rows


def row_hashes(connection: Connection, schema: str, table: str) -> Iterator[tuple[str, str]]:
    """(key, hash) of every row, by key; a server-side cursor in the connection's transaction."""
    with closing(connection.cursor(name=f"rows_{uuid4().hex}")) as cursor:
        cursor.itersize = FETCH_ROWS
        cursor.execute(
            f'SELECT id::text, md5({row_text(table)}) FROM "{schema}"."{table}" ORDER BY id'
        )
        yield from cursor

"""Makes the live tables equal to a replay: one join per table, then only the rows that differ.

Runs in a transaction that keeps projectors out. It takes the locks of ordinary INSERTs, UPDATEs and
DELETEs, so no reader waits, and touches our columns alone: whatever users put beside them stays.
"""

from collections.abc import Sequence
from typing import NamedTuple

import psycopg2
import sqlalchemy as sa
from psycopg2.errors import InsufficientPrivilege, LockNotAvailable

from consumers.database.connection import Cursor
from consumers.database.dependants import quoted
from consumers.errors import CuaProjectError
from consumers.projection.copying import TABLES
from consumers.tables import SCHEMA, Base

OF_THE_SERVER = frozenset({"08", "25", "40", "53", "57", "58", "XX"})
"""Classes of SQLSTATE for what no object of a user's causes: a lost session, a full disk ..."""


class TableDifference(NamedTuple):
    """Of one table from its replay."""

    rows: int
    """In the replay."""
    live_rows: int
    changed: int
    """Rows that only one side has, or that differ in a column of ours."""


def compare_table(cursor: Cursor, name: str, side: str) -> TableDifference:
    """Compare a live table with the one of the schema `side`, by primary key.

    Values are compared as they are stored, which is as exact as the text that `verify` hashes: `=`
    takes 1.0 and 1.00 in a document, and 0.0 and -0.0, for equal.
    """
    table = _Table(name, side)
    cursor.execute(
        f"SELECT count({table.first_key('new')}), count({table.first_key('live')}), count(*) FILTER"
        f" (WHERE {table.first_key('new')} IS NULL OR {table.first_key('live')} IS NULL OR"
        f" {table.differs(table.columns)}) FROM {table.new} AS new FULL JOIN {table.live} AS live"
        f" ON {table.same_key}"
    )
    row = cursor.fetchone()
    assert row is not None  # noqa: S101  # an aggregate has one row
    return TableDifference(*row)


def merge(cursor: Cursor, names: Sequence[str], side: str) -> None:
    """Give these live tables, in the order of their definition, the rows of the schema `side`.

    CuaProjectError, naming it, when something that users added refuses a change or changes what is
    written; the transaction is then of no more use.
    """
    tables = [_Table(name, side) for name in names]
    table = None
    try:
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
        # Rows that refer to others go first and come last, for users' foreign keys between them.
        for table in reversed(tables):
            table.delete(cursor)
        for table in tables:
            table.update(cursor)
            table.insert(cursor)
        table = None
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    except psycopg2.Error as error:
        if not _is_users(error):
            raise
        raise _refused(error, None if table is None else table.name) from None
    for name in names:
        if (left := compare_table(cursor, name, side).changed) > 0:
            raise _altered(cursor, name, left)


class _Table:
    """The SQL of one table's merge."""

    def __init__(self, name: str, side: str) -> None:
        definition = Base.metadata.tables[f"{SCHEMA}.{name}"]
        self.name = f"{SCHEMA}.{name}"
        # Rows of a table of users' that inherits from ours are theirs.
        self.live, self.new = f"ONLY {quoted(SCHEMA, name)}", quoted(side, name)
        self._target = quoted(SCHEMA, name)
        self.columns = list(TABLES[name].by_name)
        self._key = [column.name for column in definition.primary_key]
        self._unique = _unique_columns(definition)
        self.same_key = " AND ".join(f"new.{quoted(key)} = live.{quoted(key)}" for key in self._key)

    def first_key(self, alias: str) -> str:
        """NULL where that side has no such row."""
        return f"{alias}.{quoted(self._key[0])}"

    def differs(self, columns: Sequence[str]) -> str:
        """Whether two rows of one key differ in these columns, as they are stored."""
        new, live = (
            f"ROW({', '.join(f'{alias}.{quoted(column)}' for column in columns)})::record"
            for alias in ("new", "live")
        )
        return f"{new} *<> {live}"

    def delete(self, cursor: Cursor) -> None:
        """Also rows with another row's unique columns, which would stand in that one's way."""
        unique = f" AND NOT {self.differs(self._unique)}" if self._unique else ""
        cursor.execute(
            f"DELETE FROM {self.live} AS live WHERE NOT EXISTS (SELECT FROM {self.new} AS new WHERE"
            f" {self.same_key}{unique})"
        )

    def update(self, cursor: Cursor) -> None:
        """Rows that both have."""
        values = ", ".join(
            f"{quoted(column)} = new.{quoted(column)}"
            for column in self.columns
            if column not in self._key
        )
        cursor.execute(
            f"UPDATE {self.live} AS live SET {values} FROM {self.new} AS new WHERE {self.same_key}"
            f" AND {self.differs(self.columns)}"
        )

    def insert(self, cursor: Cursor) -> None:
        """Rows that only the replay has."""
        names = ", ".join(quoted(column) for column in self.columns)
        cursor.execute(
            f"INSERT INTO {self._target} ({names}) SELECT {names} FROM {self.new} AS new WHERE NOT"
            f" EXISTS (SELECT FROM {self.live} AS live WHERE {self.same_key})"
        )


def _unique_columns(table: sa.Table) -> list[str]:
    """The columns of a table that decide whether two of its rows exclude each other."""
    found = {
        column.name
        for constraint in table.constraints
        if isinstance(constraint, sa.UniqueConstraint)
        for column in constraint.columns
    }
    for index in table.indexes:
        if index.unique:
            condition = str(index.dialect_options["postgresql"]["where"])
            found |= {column.name for column in index.columns}
            found |= {column.name for column in table.columns if column.name in condition.split()}
    return sorted(found)


def _is_users(error: psycopg2.Error) -> bool:
    """Whether an object of a user's refuses a change, rather than the server or a lock."""
    if isinstance(error, LockNotAvailable | InsufficientPrivilege) or error.pgcode is None:
        return False
    return error.pgcode[:2] not in OF_THE_SERVER


def refused_by(error: psycopg2.Error) -> str:
    """PostgreSQL's own words, with the rows or the function that they are about."""
    diagnostics = error.diag
    frames = (diagnostics.context or "").splitlines()
    functions = [frame for frame in frames if "function" in frame]
    more = diagnostics.message_detail or next(iter(functions or frames), "")
    return f"{diagnostics.message_primary}{f' ({more})' if more else ''}"


def _refused(error: psycopg2.Error, table: str | None) -> CuaProjectError:
    on = "" if table is None else f" of {table}"
    return CuaProjectError(
        f"an object that users added refuses what the log says{on}:"
        f" {refused_by(error)}; nothing was changed. Change or drop that object, or the rows that"
        " it protects, then run `cua-project rebuild` again"
    )


def _altered(cursor: Cursor, name: str, left: int) -> CuaProjectError:
    cursor.execute(
        "SELECT 'trigger ' || tgname FROM pg_trigger WHERE tgrelid = to_regclass(%(table)s) AND NOT"
        " tgisinternal UNION ALL SELECT 'rule ' || rulename FROM pg_rewrite WHERE ev_class ="
        " to_regclass(%(table)s) ORDER BY 1",
        {"table": quoted(SCHEMA, name)},
    )
    objects = ", ".join(row[0] for row in cursor.fetchall())
    return CuaProjectError(
        f"{left:,} rows of {SCHEMA}.{name} are still other than in the log after they were put"
        f" right: a {objects or 'trigger or rule'} of it changes what is written; nothing was"
        " changed. Drop it or let our columns pass, then run `cua-project rebuild` again"
    )

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
        f"SELECT count({table.first_key('live')}), count(*) FILTER (WHERE {table.first_key('new')}"
        f" IS NULL OR {table.first_key('live')} IS NULL OR {table.differs(table.columns)}) FROM"
        f" {table.new} AS new FULL JOIN {table.live} AS live ON {table.same_key}"
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
        if not is_users(error):
            raise
        raise _refused(error, None if table is None else table.name) from None
    for name in names:
        if (left := compare_table(cursor, name, side).changed) > 0:
            raise _altered(cursor, name, left)


class _Unique(NamedTuple):
    """A unique key: two rows that the condition is true of may not have the same columns."""

    columns: list[str]
    decisive: list[str]
    """The columns, and those of the condition."""
    condition: str


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
        self._unique = _unique_keys(definition)
        self.same_key = self.same_key_as("live")

    def same_key_as(self, alias: str) -> str:
        """Whether that row has the primary key of the replay's."""
        return " AND ".join(f"new.{quoted(key)} = {alias}.{quoted(key)}" for key in self._key)

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
        """Rows that the replay has not, and rows whose place another row has.

        A row whose natural key was edited is updated like any other, unless another live row has
        the natural key that it must get: PostgreSQL checks ours row by row, so one of the two has
        to be gone before the other is there. What is deleted of these is inserted again.
        """
        cursor.execute(
            f"DELETE FROM {self.live} AS live WHERE NOT EXISTS (SELECT FROM {self.new} AS new WHERE"
            f" {self.same_key})"
        )
        for unique in self._unique:
            same = " AND ".join(
                f"other.{quoted(name)} = new.{quoted(name)}" for name in unique.columns
            )
            cursor.execute(
                f"DELETE FROM {self.live} AS live USING {self.new} AS new WHERE {self.same_key} AND"
                f" {self.differs(unique.decisive)} AND EXISTS (SELECT FROM (SELECT * FROM"
                f" {self.live} WHERE {unique.condition}) AS other WHERE {same} AND NOT"
                f" ({self.same_key_as('other')}))"
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


def _unique_keys(table: sa.Table) -> list[_Unique]:
    """All but the primary one."""
    found = []
    for constraint in table.constraints:
        if isinstance(constraint, sa.UniqueConstraint):
            columns = [column.name for column in constraint.columns]
            found.append(_Unique(columns, columns, "true"))
    for index in table.indexes:
        if index.unique:
            columns = [column.name for column in index.columns]
            where = index.dialect_options["postgresql"]["where"]
            condition = "true" if where is None else str(where)
            named = [column.name for column in table.columns if column.name in condition.split()]
            found.append(_Unique(columns, columns + named, condition))
    return sorted(found)


def is_users(error: psycopg2.Error) -> bool:
    """Whether an object of a user's refuses a change, rather than the server or a lock."""
    if isinstance(error, LockNotAvailable) or error.pgcode is None:
        return False
    if isinstance(error, InsufficientPrivilege):
        # Within a trigger's function it is that one's; outside of any, ours.
        return bool(error.diag.context)
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
        f"an object that a user added refuses a row of the log{on}: {refused_by(error)}; no row was"
        " changed. Drop or change it, or delete the rows that refer to that row, then run"
        " `cua-project rebuild` again"
    )


def _altered(cursor: Cursor, name: str, left: int) -> CuaProjectError:
    cursor.execute(
        "SELECT 'trigger ' || tgname FROM pg_trigger WHERE tgrelid = to_regclass(%(table)s) AND NOT"
        " tgisinternal UNION ALL SELECT 'rule ' || rulename FROM pg_rewrite WHERE ev_class ="
        " to_regclass(%(table)s) ORDER BY 1",
        {"table": quoted(SCHEMA, name)},
    )
    objects = ", ".join(row[0] for row in cursor.fetchall()) or "none was found"
    return CuaProjectError(
        f"{left:,} rows of {SCHEMA}.{name} still differ from the log after they were corrected, so"
        f" one of its triggers or rules changes what is written ({objects}); no row was changed."
        " Drop it, or make it leave our columns alone, then run `cua-project rebuild` again"
    )

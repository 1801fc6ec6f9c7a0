"""An entry's table: rows converted to column types, its set-up, and the hash of its state."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, assert_never

from pydantic import JsonValue

from producer.agents.dbbench.data.column_types import ColumnType, Value, column_type
from producer.sql_execution import Database, Limits, Setup, open_throw_away
from producer.sql_execution.mysql_functions import COLLATION, collation_key
from producer.sql_execution.mysql_session import backticked
from producer.sql_execution.mysql_values import as_text
from producer.sql_execution.sqlite import quoted
from schemas.entry import TableInfo


def table_rows(table: TableInfo) -> tuple[tuple[Value, ...], ...]:
    """The rows as inserted. Raises ValueError, prefixed with the position of the row and column."""
    types = _types(table)
    rows = tuple(_row(row, types, number, table) for number, row in enumerate(table.rows))
    _check_keys(table, types, rows)
    return rows


def _check_keys(
    table: TableInfo, types: Sequence[ColumnType], rows: Sequence[Sequence[Value]]
) -> None:
    """Raise ValueError if a PRIMARY KEY or UNIQUE column has a value twice."""
    for attribute, num_columns in (
        ("PRIMARY KEY", sum(kind.rules.is_primary for kind in types)),
        ("AUTO_INCREMENT", sum(kind.rules.is_numbered for kind in types)),
    ):
        if num_columns > 1:
            message = f"column_info_list: {num_columns} columns are {attribute}; at most one may be"
            raise ValueError(message)
    for column, kind, values in zip(table.columns, types, zip(*rows, strict=True), strict=False):
        seen: dict[Value, int] = {}
        for number, value in enumerate(values if kind.rules.is_key else ()):
            key = collation_key(value) if isinstance(value, str) else value
            if key in seen and key is not None:
                where = f"row_list[{number}], column {column.name}: {value!r}"
                name = "PRIMARY KEY" if kind.rules.is_primary else "UNIQUE"
                message = f"{where} is in row_list[{seen[key]}], too; the column is {name}"
                raise ValueError(message)
            seen[key] = number


def _types(table: TableInfo) -> tuple[ColumnType, ...]:
    return tuple(column_type(column.type) for column in table.columns)


def _row(
    row: Sequence[JsonValue], types: Sequence[ColumnType], number: int, table: TableInfo
) -> tuple[Value, ...]:
    if len(row) != len(types):
        message = f"row_list[{number}]: it has {len(row)} values; there are {len(types)} columns"
        raise ValueError(message)
    values = []
    for column, kind, value in zip(table.columns, types, row, strict=True):
        try:
            values.append(kind.value(value))
        except ValueError as error:
            message = f"row_list[{number}], column {column.name}: {error}"
            raise ValueError(message) from error
    return tuple(values)


EMPTY: Final = "None"
ROW_DIGITS: Final = 5


def table_hash(rows: Iterable[Iterable[int | float | str | None]]) -> str:
    """The table's hash as DB Bench computes it in MySQL: 32 hex digits, independent of row order.

    `md5(group_concat(rowhash order by rowhash))` of `substring(md5(concat_ws(',', columns)), 1,
    5)`.

    NULLs in a row are skipped. The hash of a table without rows is `EMPTY`.
    """
    hashes = sorted(map(row_hash, rows))
    return _md5(",".join(hashes)) if hashes else EMPTY


def row_hash(row: Iterable[int | float | str | None]) -> str:
    """The first five hex digits of the row's md5."""
    return _md5(",".join(as_text(value) for value in row if value is not None))[:ROW_DIGITS]


def state_hash(database: Database, table: TableInfo) -> str:
    """The hash of the table's current state. Raises DatabaseFailedError."""
    rows = database.table_rows(table.name, [column.name for column in table.columns])
    types = _types(table)
    return table_hash(
        [kind.text_of(value) for kind, value in zip(types, row, strict=True)] for row in rows
    )


SINGLE_LIMIT: Final = 3.4028235677973366e38
"""Numbers from here on round to more than the largest single-precision number."""


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


LIMITS = Limits(time_s=2.0, num_rows=200, result_characters=10_000, sql_characters=5_000)
"""An observation has to fit into a prompt; tables have about fifty rows."""


def state_after(table: TableInfo, sql: str) -> str:
    """The table's hash after a statement. Raises SqlRefusedError, DatabaseFailedError."""
    database = open_embedded(table)
    try:
        database.execute(sql)
        return state_hash(database, table)
    finally:
        database.close()


def open_embedded(table: TableInfo, limits: Limits = LIMITS) -> Database:
    """Build the table in SQLite, which then executes MySQL statements.

    Raises DatabaseFailedError, and ValueError for rows that do not fit their columns.
    """
    types = {column.name: column_type(column.type).name for column in table.columns}
    return open_throw_away(table_setup(table), limits, {table.name: types})


def table_setup(table: TableInfo) -> tuple[Setup, ...]:
    """CREATE TABLE and INSERT, and triggers that convert values as MySQL's strict mode does."""
    name = quoted(table.name)
    columns = ", ".join(_column(column.name, column_type(column.type)) for column in table.columns)
    places = ", ".join("?" * len(table.columns))
    kinds = {
        quoted(column.name): kind
        for column, kind in zip(table.columns, _types(table), strict=True)
        if _stored("", kind) is not None and not kind.rules.is_numbered
    }
    return (
        Setup(f"CREATE TABLE {name} ({columns})"),
        Setup(f"INSERT INTO {name} VALUES ({places})", table_rows(table)),
        *(_storing(name, kinds, event) for event in ("INSERT", "UPDATE") if kinds),
    )


def _column(name: str, kind: ColumnType) -> str:
    column, rules = quoted(name), kind.rules
    affinity, checks = _affinity(column, kind)
    parts = [column, affinity]
    if rules.is_numbered:
        parts.append("PRIMARY KEY AUTOINCREMENT")
        checks = [*checks, f"{column} <> 0"]
    elif rules.is_key:
        parts.append("UNIQUE")
    if rules.default is not None:
        parts.append(f"DEFAULT {_literal(rules.default)}")
    if checks:
        parts.append(f"CHECK ({column} IS NULL OR ({' AND '.join(checks)}))")
    if not rules.is_nullable and not rules.is_numbered:
        # With SQLite's own NOT NULL, REPLACE would insert the default instead of failing.
        what = quoted(f"{name} cannot be NULL")
        parts.append(f"CONSTRAINT {what} CHECK ({column} IS NOT NULL)")
    return " ".join(parts)


def _literal(value: int | float | str) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def _affinity(column: str, kind: ColumnType) -> tuple[str, list[str]]:
    """SQLite's column type, and conditions that every value must meet."""
    is_number = f"typeof({column}) IN ('integer', 'real')"
    match kind.kind:
        case "INT":
            is_within = f"{column} > {kind.low}.0 - 0.5 AND {column} < {kind.high}.0 + 0.5"
            return "INTEGER", [is_number, is_within]
        case "DECIMAL" | "DOUBLE":
            rules = [is_number]
            if kind.scale is not None:
                limit = 10 ** (kind.digits - kind.scale)
                rules.append(f"abs(round({column}, {kind.scale})) < {limit}.0")
            if kind.is_unsigned:
                rules.append(f"{column} >= 0")
            if kind.is_single:
                rules.append(f"abs({column}) < {SINGLE_LIMIT}")
            return "INTEGER" if kind.kind == "DECIMAL" and not kind.scale else "REAL", rules
        case "TEXT":
            text = f"TEXT COLLATE {COLLATION}"
            if kind.time is not None:
                return text, [f"mysql_time('{kind.time}', {column}) IS NOT NULL"]
            if kind.max_characters is not None:
                return text, [f"length(rtrim({column}, ' ')) <= {kind.max_characters}"]
            return text, []
        case _:
            assert_never(kind.kind)


def _stored(value: str, kind: ColumnType) -> str | None:
    """An SQL expression for what the column stores of `value`; None if it stores it unchanged.

    A number in an INT or a DECIMAL is rounded, halves away from zero.
    """
    if kind.kind == "INT" or (kind.kind == "DECIMAL" and not kind.scale):
        # A 64-bit integer would lose digits here.
        rounded = f"CAST(round({value}) AS INTEGER)"
        return f"CASE typeof({value}) WHEN 'real' THEN {rounded} ELSE {value} END"
    if kind.kind in {"DECIMAL", "DOUBLE"}:
        rounded = value if kind.scale is None else f"round({value}, {kind.scale})"
        stored = f"mysql_single({rounded})" if kind.is_single else rounded
        return None if stored == value else stored
    if kind.time is not None:
        return f"mysql_time('{kind.time}', {value})"
    if kind.is_padded:
        return f"rtrim({value}, ' ')"
    if kind.max_characters is not None:
        return f"substr({value}, 1, {kind.max_characters})"
    return None


def _storing(name: str, kinds: Mapping[str, ColumnType], event: str) -> Setup:
    """A trigger that replaces values by what their columns store."""
    stored = ", ".join(f"{column} = {_stored(column, kind)}" for column, kind in kinds.items())
    is_other = " OR ".join(
        # Compare characters, because the collation ignores trailing spaces.
        f"NEW.{column} COLLATE BINARY IS NOT {_stored(f'NEW.{column}', kind)}"
        for column, kind in kinds.items()
    )
    return Setup(
        f"CREATE TRIGGER {quoted('stored on ' + event.lower())} AFTER {event} ON {name}"
        f" WHEN {is_other} BEGIN UPDATE {name} SET {stored} WHERE rowid = NEW.rowid; END"
    )


def server_setup(table: TableInfo) -> tuple[Setup, ...]:
    """The same set-up for MySQL and MariaDB."""
    columns = ", ".join(
        f"{backticked(column.name)} {column_type(column.type).definition}"
        for column in table.columns
    )
    places = ", ".join(["%s"] * len(table.columns))
    name = backticked(table.name).replace("%", "%%")
    rows = table_rows(table)
    insert = Setup(f"INSERT INTO {name} VALUES ({places})", rows)
    return (
        Setup(f"CREATE TABLE {backticked(table.name)} ({columns})"),
        *((insert,) if rows else ()),
    )

"""An entry's table: its rows by the types of its columns, what builds it, and its state's hash."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

from pydantic import JsonValue

from producer.sql_execution import Database, Limits, Setup, open_throw_away
from producer.sql_execution.mysql_functions import COLLATION
from producer.sql_execution.mysql_session import backticked
from producer.sql_execution.sqlite import quoted
from schemas.entry import TableInfo

INT, TEXT = "INT", "TEXT"
TYPES: Final = (INT, TEXT)
INT_RANGE: Final = (-(2**31), 2**31 - 1)
"""Of MySQL's INT."""
FAR: Final = 2**40
NUMBER: Final = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?\s*")

Value = int | str | None


def column_type(declared: str) -> str:
    """INT or TEXT. ValueError."""
    name = declared.strip().upper()
    if name not in TYPES:
        message = f"{declared!r} is no type of DB Bench; use INT or TEXT"
        raise ValueError(message)
    return name


def table_rows(table: TableInfo) -> tuple[tuple[Value, ...], ...]:
    """The rows as they are inserted. ValueError, led by the row's and the column's place."""
    types = [column_type(column.type) for column in table.columns]
    return tuple(_row(row, types, number, table) for number, row in enumerate(table.rows))


def _row(
    row: Sequence[JsonValue], types: Sequence[str], number: int, table: TableInfo
) -> tuple[Value, ...]:
    if len(row) != len(types):
        message = f"row_list[{number}]: it has {len(row)} values; there are {len(types)} columns"
        raise ValueError(message)
    values = []
    for column, kind, value in zip(table.columns, types, row, strict=True):
        try:
            values.append(as_int(value) if kind == INT else as_text(value))
        except ValueError as error:
            message = f"row_list[{number}], column {column.name}: {error}"
            raise ValueError(message) from error
    return tuple(values)


def as_int(value: JsonValue) -> int | None:
    """A value of an INT column, rounded as MySQL does: halves away from zero. ValueError."""
    if value is None:
        return None
    text = str(int(value) if isinstance(value, bool) else value)
    if not isinstance(value, int | float | str) or not NUMBER.fullmatch(text):
        message = f"{value!r} is no number"
        raise ValueError(message)
    exact = Decimal(text.strip())
    # Far outside, `quantize` would need more digits than it has.
    number = int(exact.quantize(Decimal(1), ROUND_HALF_UP)) if abs(exact) < FAR else FAR
    if not INT_RANGE[0] <= number <= INT_RANGE[1]:
        message = f"{value!r} is out of range of an INT"
        raise ValueError(message)
    return number


def as_text(value: JsonValue) -> str | None:
    """A value of a TEXT column. ValueError."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        message = f"{value!r} is no text"
        raise ValueError(message)  # noqa: TRY004  # of a data set's file, not of our code
    return str(value)


EMPTY: Final = "None"
ROW_DIGITS: Final = 5


def table_hash(rows: Iterable[Iterable[int | float | str | None]]) -> str:
    """As DB Bench computes it in MySQL: 32 hex digits, whatever the order of the rows.

        md5(group_concat(rowhash order by rowhash)) of substring(md5(concat_ws(',', columns)), 1, 5)

    NULL is skipped in a row; `EMPTY` without any row.
    """
    hashes = sorted(map(row_hash, rows))
    return _md5(",".join(hashes)) if hashes else EMPTY


def row_hash(row: Iterable[int | float | str | None]) -> str:
    """Five hex digits."""
    return _md5(",".join(_text(value) for value in row if value is not None))[:ROW_DIGITS]


def state_hash(database: Database, table: TableInfo) -> str:
    """Of the table as it is now. DatabaseFailedError."""
    return table_hash(database.table_rows(table.name, [column.name for column in table.columns]))


def _text(value: float | str) -> str:
    """As MySQL writes it: a whole number without a point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


LIMITS = Limits(time_s=2.0, num_rows=200, result_characters=10_000, sql_characters=5_000)
"""An observation has to fit into a prompt; a table has some fifty rows."""


def open_embedded(table: TableInfo, limits: Limits = LIMITS) -> Database:
    """The table in SQLite, whose statements are MySQL's. DatabaseFailedError.

    ValueError for rows that do not fit their columns.
    """
    types = {column.name: column_type(column.type) for column in table.columns}
    return open_throw_away(table_setup(table), limits, {table.name: types})


def table_setup(table: TableInfo) -> tuple[Setup, ...]:
    """CREATE TABLE and INSERT, with what MySQL's strict mode does to an INT."""
    name = quoted(table.name)
    columns = ", ".join(_column(column.name, column_type(column.type)) for column in table.columns)
    places = ", ".join("?" * len(table.columns))
    numbers = [quoted(column.name) for column in table.columns if column_type(column.type) == INT]
    return (
        Setup(f"CREATE TABLE {name} ({columns})"),
        Setup(f"INSERT INTO {name} VALUES ({places})", table_rows(table)),
        *(_rounding(name, numbers, event) for event in ("INSERT", "UPDATE") if numbers),
    )


def _column(name: str, kind: str) -> str:
    column = quoted(name)
    if kind != INT:
        return f"{column} TEXT COLLATE {COLLATION}"
    low, high = INT_RANGE
    is_number = f"typeof({column}) IN ('integer', 'real')"
    is_within = f"{column} > {low}.0 - 0.5 AND {column} < {high}.0 + 0.5"
    return f"{column} INTEGER CHECK ({column} IS NULL OR ({is_number} AND {is_within}))"


def _rounding(name: str, numbers: Sequence[str], event: str) -> Setup:
    """A fraction that is stored in an INT is rounded, halves away from zero."""
    rounded = ", ".join(f"{number} = CAST(round({number}) AS INTEGER)" for number in numbers)
    is_fraction = " OR ".join(f"typeof(NEW.{number}) = 'real'" for number in numbers)
    return Setup(
        f"CREATE TRIGGER {quoted('round on ' + event.lower())} AFTER {event} ON {name}"
        f" WHEN {is_fraction} BEGIN UPDATE {name} SET {rounded} WHERE rowid = NEW.rowid; END"
    )


def server_setup(table: TableInfo) -> tuple[Setup, ...]:
    """The same for MySQL and MariaDB."""
    columns = ", ".join(
        f"{backticked(column.name)} {column_type(column.type)}" for column in table.columns
    )
    places = ", ".join(["%s"] * len(table.columns))
    name = backticked(table.name).replace("%", "%%")
    rows = table_rows(table)
    insert = Setup(f"INSERT INTO {name} VALUES ({places})", rows)
    return (
        Setup(f"CREATE TABLE {backticked(table.name)} ({columns})"),
        *((insert,) if rows else ()),
    )

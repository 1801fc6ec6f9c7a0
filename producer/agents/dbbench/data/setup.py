"""The statements that build an entry's table in the embedded database."""

from collections.abc import Sequence

from producer.agents.dbbench.data.table import INT, INT_RANGE, column_type, table_rows
from producer.sql_execution import Database, Limits, Setup, open_throw_away
from producer.sql_execution.mysql_functions import COLLATION
from producer.sql_execution.mysql_session import backticked
from producer.sql_execution.sqlite import quoted
from schemas.entry import TableInfo

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

"""The statements that build an entry's table in the embedded database."""

from producer.sql_data.dbbench.table import INT, column_type, table_rows
from producer.sql_execution import Limits, Setup
from producer.sql_execution.mysql_session import backticked
from producer.sql_execution.sqlite import quoted
from schemas.entry import TableInfo

LIMITS = Limits(num_rows=200, result_characters=10_000)
"""An observation has to fit into a prompt."""


def table_setup(table: TableInfo) -> tuple[Setup, ...]:
    """CREATE TABLE and INSERT. ValueError for rows that do not fit the columns."""
    columns = ", ".join(
        f"{quoted(column.name)} {'INTEGER' if column_type(column.type) == INT else 'TEXT'}"
        for column in table.columns
    )
    places = ", ".join("?" * len(table.columns))
    return (
        Setup(f"CREATE TABLE {quoted(table.name)} ({columns})"),
        Setup(f"INSERT INTO {quoted(table.name)} VALUES ({places})", table_rows(table)),
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

"""A session's own database on a MySQL or MariaDB server, accessed by its own user.

The user may SELECT, INSERT, UPDATE and DELETE there and has no rights elsewhere. A statement that
exceeds its time limit is killed and rolled back.
"""

import contextlib
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

from producer.sql_execution.database import (
    Cell,
    DatabaseFailedError,
    Limits,
    Rows,
    Setup,
    SqlRefusedError,
    within_limits,
)
from producer.sql_execution.guard import statement_problem
from producer.sql_execution.mysql_admin import Access, Administrator, connect
from producer.sql_execution.mysql_values import clock_text

SQL_MODE: Final = (
    "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
)
"""MySQL 8's default, used for MariaDB too."""
GRACE_S: Final = 2.0
"""Extra time for the server to stop a statement by itself."""
LOST: Final = frozenset({2006, 2013, 2014, 2055, 1317, 1927, 3169})
"""Error codes for a connection that was lost or killed."""
TOO_LONG: Final = frozenset({1969, 3024})
"""Error codes of MariaDB and MySQL for a statement that took too long."""


class MysqlDatabase:
    """One session's database. Used by one thread at a time."""

    def __init__(
        self, administrator: Administrator, setup: Sequence[Setup], limits: Limits
    ) -> None:
        """Create the database. `setup` uses `%s` for values. Raises DatabaseFailedError."""
        self._administrator = administrator
        self._limits = limits
        self._connection: Any = None
        self._access: Access | None = administrator.create()
        try:
            for statement in setup:
                administrator.run(self._access.name, statement.sql, statement.rows)
        except DatabaseFailedError:
            self.close()
            raise

    def execute(self, sql: str) -> Rows:
        """Execute one statement of the agent. Raises SqlRefusedError, DatabaseFailedError."""
        import pymysql

        problem = statement_problem(sql, self._limits)
        if problem is not None:
            raise SqlRefusedError(problem)
        connection = self._connected()
        too_long = f"the statement took longer than {self._limits.time_s:g} s and was stopped"
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql)
                return self._rows(cursor)
        except pymysql.MySQLError as error:
            code = error.args[0] if error.args else 0
            if code in LOST:
                self._lose()
                raise SqlRefusedError(too_long) from error
            text = str(error.args[1]) if len(error.args) > 1 else str(error)
            raise SqlRefusedError(too_long if code in TOO_LONG else text) from error
        except OSError as error:
            self._lose()
            raise SqlRefusedError(too_long) from error
        except (UnicodeError, ValueError, RuntimeError) as error:
            raise SqlRefusedError(str(error)) from error

    def table_rows(self, table: str, columns: Sequence[str]) -> tuple[tuple[Cell, ...], ...]:
        """Every row of a table, in no particular order. Raises DatabaseFailedError."""
        listed = ", ".join(map(backticked, columns))
        query = f"SELECT {listed} FROM {backticked(table)}"
        rows = self._administrator.run(self._named().name, query)
        return tuple(tuple(map(_cell, row)) for row in rows)

    def close(self) -> None:
        """Drop the database. Idempotent; raises nothing: the next start drops what is left."""
        access, self._access = self._access, None
        self._disconnect()
        if access is not None:
            with contextlib.suppress(DatabaseFailedError):
                self._administrator.drop(access)

    def _rows(self, cursor: Any) -> Rows:  # noqa: ANN401  # pymysql ships no types
        cells = (tuple(map(_cell, row)) for row in cursor.fetchall())
        rows, is_truncated = within_limits(cells, self._limits)
        return Rows(
            columns=tuple(column[0] for column in cursor.description or ()),
            rows=tuple(map(tuple, rows)),
            is_truncated=is_truncated,
        )

    def _connected(self) -> Any:  # noqa: ANN401  # pymysql ships no types
        if self._connection is not None:
            return self._connection
        name, password = self._named()
        limits, url = self._limits, self._administrator.url
        connection = connect(url, name, password, name, limits.time_s + GRACE_S)
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION sql_mode = %s", (SQL_MODE,))
            cursor.execute(f"SET SESSION sql_select_limit = {limits.num_rows + 1}")
            cursor.execute("SET NAMES utf8mb4 COLLATE utf8mb4_general_ci")
            if "mariadb" in connection.get_server_info().lower():
                cursor.execute(f"SET SESSION max_statement_time = {limits.time_s:f}")
            else:
                cursor.execute(f"SET SESSION max_execution_time = {limits.time_s * 1000:.0f}")
        self._connection = connection
        return connection

    def _named(self) -> Access:
        if self._access is None:
            message = "the database is closed"
            raise DatabaseFailedError(message)
        return self._access

    def _lose(self) -> None:
        """Kill the running statement, so that it is rolled back before the next one."""
        self._administrator.end_statements(self._named())
        self._disconnect()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()


def _cell(value: object) -> Cell:
    """Convert a value to SQLite's types: a whole DECIMAL becomes an int, any other a float."""
    match value:
        case None | int() | float() | str():
            return value
        case Decimal():
            whole = value.as_tuple().exponent == 0
            return int(value) if whole else float(value)
        case bytes():
            return f"X'{value.hex().upper()}'"
        case timedelta():
            return clock_text(value)
        case _:
            return str(value)


def backticked(name: str) -> str:
    """Quote an identifier for MySQL."""
    return "`" + name.replace("`", "``") + "`"

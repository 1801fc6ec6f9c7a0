"""The process that executes SQL: one connection at a time, requests and answers as JSON lines.

It cannot write files (RLIMIT_FSIZE), ends when its parent's stream does, and is killed by its own
timer when a single SQLite call hangs. Started by `children`.
"""

import json
import resource
import signal
import sqlite3
import sys
import time
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from producer.sql_execution.database import MEGABYTE, Limits, within_limits
from producer.sql_execution.guard import Guard, statement_problem

PAGE_BYTES: Final = 4096
TIMER_AFTER_S: Final = 1.0
"""How long after the limit the timer fires. It catches what the progress handler does not see."""
PYTHON_BYTES: Final = 1024 * MEGABYTE
"""Address space for the interpreter itself and the rows that it holds."""
FILE_ERRORS: Final = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR", "SQLITE_CANTOPEN")
"""Primary error codes; SQLite's extended error codes begin with them."""

Fields = dict[str, Any]


def confine(memory_bytes: int) -> None:
    """Drop capabilities that no statement needs: writing files, core dumps and unlimited memory."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        most = memory_bytes + PYTHON_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)


class Session:
    """One open database."""

    def __init__(
        self,
        path: str | None,
        limits: Limits,
        setup: Sequence[Fields],
        mysql_tables: "dict[str, dict[str, str]] | None" = None,
    ) -> None:
        """Open a file read-only, or a database in memory if `path` is None. Raises sqlite3.Error.

        `mysql_tables` are `mysql_dialect.Tables` if statements are MySQL's; None if they are
        SQLite's.
        """
        self._limits = limits
        self._mysql_tables = mysql_tables
        self._is_file = path is not None
        name = ":memory:"
        if path is not None:
            # `immutable` uses no lock and no shared memory file; the database must not change
            # meanwhile.
            name = f"file:{quote(path)}?mode=ro&immutable=1"
        self._connection = sqlite3.connect(
            name, isolation_level=None, uri=path is not None, cached_statements=0
        )
        self._connection.text_factory = lambda text: text.decode("utf-8", "replace")
        functions: frozenset[str] = frozenset()
        if mysql_tables is not None:
            from producer.sql_execution import mysql_functions

            mysql_functions.register(self._connection)
            functions = frozenset(mysql_functions.FUNCTIONS)
        self._guard = Guard(
            limits, time.process_time, is_read_only=path is not None, functions=functions
        )
        for pragma in (
            "temp_store = MEMORY",
            "recursive_triggers = OFF",
            # A file's schema is untrusted. Our own schema uses functions that are registered here.
            f"trusted_schema = {'OFF' if self._is_file else 'ON'}",
            "cell_size_check = ON",
            f"hard_heap_limit = {limits.memory_bytes}",
        ):
            self._connection.execute(f"PRAGMA {pragma}")
        if path is None:
            self._connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            pages = limits.database_bytes // PAGE_BYTES
            self._connection.execute(f"PRAGMA max_page_count = {pages}")
        for statement in setup:
            if statement["rows"] is None:
                self._connection.execute(statement["sql"])
            else:
                self._connection.executemany(statement["sql"], statement["rows"])
        self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        self._guard.attach(self._connection)

    def execute(self, sql: str) -> Fields:
        """The rows, or `refused` with a reason, or `failed` if the file cannot be read."""
        limits = self._limits
        problem = statement_problem(sql, limits)
        if problem is not None:
            return {"refused": problem}
        self._guard.begin()
        signal.setitimer(signal.ITIMER_PROF, limits.time_s + TIMER_AFTER_S)
        before = self._connection.total_changes
        cursor = self._connection.cursor()
        try:
            cursor.execute(self._for_sqlite(sql))
            cells = ([_cell(value) for value in row] for row in cursor)
            rows, is_truncated = within_limits(cells, limits)
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
            kind = "failed" if self._is_file and _is_of_the_file(error) else "refused"
            return {kind: self._guard.denied or str(error)}
        except MemoryError:
            megabytes = limits.memory_bytes // MEGABYTE
            return {"refused": f"the statement needs more than {megabytes} MB of memory"}
        finally:
            cursor.close()
            signal.setitimer(signal.ITIMER_PROF, 0)
        return {
            "columns": [column[0] for column in cursor.description or ()],
            "rows": rows,
            "truncated": is_truncated,
            "wrote": self._connection.total_changes != before,
        }

    def _for_sqlite(self, sql: str) -> str:
        """Translate MySQL to SQLite. Raises ValueError for statements that MySQL would refuse."""
        if self._mysql_tables is None:
            return sql
        from producer.sql_execution.mysql_dialect import translate

        return translate(sql, self._mysql_tables)

    def table(self, sql: str) -> Fields:
        """Every row of a trusted query."""
        self._guard.begin()
        return {"rows": [[_cell(value) for value in row] for row in self._connection.execute(sql)]}

    def close(self) -> None:
        """Close the connection, which discards a database in memory."""
        self._connection.close()


def _is_of_the_file(error: Exception) -> bool:
    """Whether the error is the file's fault rather than the statement's."""
    name = getattr(error, "sqlite_errorname", "")
    return name.startswith(FILE_ERRORS) and name != "SQLITE_IOERR_NOMEM"


def _cell(value: object) -> object:
    return f"X'{value.hex().upper()}'" if isinstance(value, bytes) else value


def answer(session: Session | None, request: Fields) -> tuple[Session | None, Fields]:
    """Handle a request. Returns the session after it, and the answer."""
    match request["op"]:
        case "open":
            limits = Limits(**request["limits"])
            try:
                return (
                    Session(request["path"], limits, request["setup"], request.get("mysql_tables")),
                    {},
                )
            except (sqlite3.Error, OverflowError, MemoryError) as error:
                return None, {"failed": str(error) or "out of memory"}
        case "execute" if session is not None:
            return session, session.execute(request["sql"])
        case "table" if session is not None:
            try:
                return session, session.table(request["sql"])
            except (sqlite3.Error, MemoryError) as error:
                return session, {"failed": str(error) or "out of memory"}
        case _:
            if session is not None:
                session.close()
            return None, {}


def main() -> None:
    """Answer requests until the parent closes the stream."""
    confine(int(sys.argv[1]))
    session: Session | None = None
    for line in sys.stdin.buffer:
        session, answered = answer(session, json.loads(line))
        sys.stdout.buffer.write(json.dumps(answered).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()

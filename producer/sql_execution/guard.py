"""Restricts a connection to SELECT, INSERT, UPDATE and DELETE on its own tables.

Everything that is not listed here is refused, so that a newer SQLite opens no way out: no ATTACH,
PRAGMA, DDL, transaction, virtual table, or function that reads files, loads code or draws random
numbers.
"""

import re
import sqlite3
from collections.abc import Callable
from typing import Final

from producer.sql_execution.database import Limits

KINDS: Final = ("SELECT", "WITH", "VALUES", "INSERT", "UPDATE", "DELETE", "REPLACE")
"""First words of allowed statements."""
SPACE_AND_COMMENTS: Final = re.compile(
    r"(?:\s+|--[^\n]*(?:\n|\Z)|#[^\n]*(?:\n|\Z)|/\*.*?\*/)*", re.DOTALL
)
FUNCTION_NAMES: Final = (
    # Aggregates and window functions.
    "avg count group_concat string_agg max min sum total row_number rank dense_rank percent_rank"
    " cume_dist ntile lag lead first_value last_value nth_value"
    # Texts.
    " char concat concat_ws format glob hex instr length like lower ltrim octet_length printf quote"
    " replace rtrim soundex substr substring trim unhex unicode upper"
    # Numbers.
    " abs acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln log"
    " log10 log2 mod pi pow power radians round sign sin sinh sqrt tan tanh trunc"
    # Dates.
    " current_date current_time current_timestamp date datetime julianday strftime time timediff"
    " unixepoch"
    # Values.
    " coalesce if ifnull iif likelihood likely nullif typeof unlikely"
    # JSON functions that take time proportional to their text.
    " -> ->> json_array_length json_extract json_type json_valid"
    # The connection.
    " changes last_insert_rowid"
)
FUNCTIONS: Final = frozenset(FUNCTION_NAMES.split())
PRINTF: Final = frozenset({"printf", "format"})
MODULE_NAMES: Final = (
    "dbstat sqlite_dbpage sqlite_stmt fts3tokenize fts4aux fts5vocab bytecode tables_used"
    " generate_series completion csv zipfile fsdir json_each json_tree"
)
NO_TABLES: Final = frozenset(MODULE_NAMES.split())
"""Modules that can be read without CREATE VIRTUAL TABLE. Tables whose names begin with `pragma_`
are refused too."""
CHANGES: Final = frozenset({sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE})
STEPS_BETWEEN_CHECKS: Final = 1_000
LIKE_PATTERN_BYTES: Final = 200


class Guard:
    """The authorizer and the progress handler of one connection.

    `denied` is the reason why the last statement was refused. `clock` returns CPU time in seconds.
    """

    def __init__(
        self,
        limits: Limits,
        clock: Callable[[], float],
        *,
        is_read_only: bool,
        functions: frozenset[str] = frozenset(),
    ) -> None:
        """`functions` are further allowed functions registered on the connection.

        PRINTF is then refused.
        """
        self._limits = limits
        self._clock = clock
        self._is_read_only = is_read_only
        # MySQL has no printf, whose width arguments allow the longest single calls.
        self._functions = (FUNCTIONS - PRINTF if functions else FUNCTIONS) | functions
        self._deadline_s = 0.0
        self._num_steps = 0
        self.denied: str | None = None

    def attach(self, connection: sqlite3.Connection) -> None:
        """Guard all further statements of the connection."""
        limits = self._limits
        for category, value in (
            (sqlite3.SQLITE_LIMIT_LENGTH, limits.value_bytes),
            (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 4 * limits.sql_characters),
            (sqlite3.SQLITE_LIMIT_COLUMN, 500),
            (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 200),
            (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 50),
            (sqlite3.SQLITE_LIMIT_VDBE_OP, 100_000),
            (sqlite3.SQLITE_LIMIT_FUNCTION_ARG, 50),
            (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
            (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, LIKE_PATTERN_BYTES),
            (sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 1),
            (sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 4),
            (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
        ):
            connection.setlimit(category, value)
        connection.set_authorizer(self._authorize)
        connection.set_progress_handler(self._is_over, STEPS_BETWEEN_CHECKS)

    def begin(self) -> None:
        """Reset the limits. Call before each statement."""
        self.denied = None
        self._num_steps = 0
        self._deadline_s = self._clock() + self._limits.time_s

    def _is_over(self) -> bool:
        limits = self._limits
        self._num_steps += STEPS_BETWEEN_CHECKS
        if limits.num_steps is not None and self._num_steps > limits.num_steps:
            self.denied = "the statement takes too many steps and was stopped"
        elif self._clock() > self._deadline_s:
            self.denied = f"the statement took longer than {limits.time_s:g} s and was stopped"
        return self.denied is not None

    def _authorize(
        self,
        action: int,
        first: str | None,
        second: str | None,
        database: str | None,  # noqa: ARG002  # required by the interface; ATTACH and TEMP are refused
        trigger: str | None,
    ) -> int:
        reason = self._reason(action, first, second, trigger)
        if reason is None:
            return sqlite3.SQLITE_OK
        self.denied = reason
        return sqlite3.SQLITE_DENY

    def _reason(
        self, action: int, first: str | None, second: str | None, trigger: str | None
    ) -> str | None:
        """Why the action is refused; None if it is allowed."""
        name = (first or "").lower()
        if action in {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE}:
            return None
        if action == sqlite3.SQLITE_FUNCTION:
            function = (second or "").lower()
            return (
                None
                if function in self._functions
                else f"the function {function} cannot be used here"
            )
        if action == sqlite3.SQLITE_READ:
            is_module = name in NO_TABLES or name.startswith("pragma_")
            return f"the table {name} cannot be read" if is_module else None
        if action in CHANGES and not name.startswith("sqlite_"):
            if self._is_read_only and trigger is None:
                return "the database is read-only: only SELECT can be executed"
            return None
        return "only SELECT, INSERT, UPDATE and DELETE on the database's tables can be executed"


def statement_problem(sql: str, limits: Limits) -> str | None:
    """Why this text is not even passed to SQLite; None if it may be."""
    if len(sql) > limits.sql_characters:
        return f"the statement has {len(sql):,} characters; {limits.sql_characters:,} are allowed"
    if "\0" in sql:
        return "the statement contains a NUL character"
    if not sql.isascii() and any("\ud800" <= character <= "\udfff" for character in sql):
        return "the statement is not valid Unicode"
    begin = SPACE_AND_COMMENTS.match(sql)
    rest = sql[begin.end() :] if begin else sql
    if not rest.strip("; \t\r\n"):
        return "there is no statement to execute"
    word = re.match(r"\(*\s*([A-Za-z]+)", rest)
    if word is None or word[1].upper() not in KINDS:
        keyword = (word[1] if word else rest[:20]).upper()
        return f"{keyword} cannot be executed here; use SELECT, INSERT, UPDATE or DELETE"
    return None

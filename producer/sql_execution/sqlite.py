"""SQLite databases for agents: a throw-away database in memory, or a user's file read-only.

When its process ends, the database is rebuilt in another process from its setup and the statements
that changed it, and the current statement is retried once, because the process may have been killed
from outside. A statement that used up its time, or that ends the second process too, is refused.

Files are opened `immutable`, without locks, so that a read-only disk suffices. Such a connection
would ignore what a running or killed writer left beside the file, and would see only parts of what
a writer changes meanwhile.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, NamedTuple

from producer.sql_execution.children import CHILDREN, START_TIME_S, Child, ChildEndedError
from producer.sql_execution.database import (
    FILE_LIMITS,
    Cell,
    DatabaseFailedError,
    Limits,
    Rows,
    Setup,
    SqlRefusedError,
)

logger = logging.getLogger(__name__)

BUSY: Final = 4.0
"""Wall-clock seconds allowed per second of CPU time, for a busy machine."""
GRACE_S: Final = 10.0
"""Additional time allowed for an answer."""

JOURNAL_MAGIC: Final = bytes.fromhex("d9d505f920a163d7")
"""First bytes of a hot rollback journal: https://sqlite.org/fileformat2.html#rollbackjournal."""

Fields = dict[str, Any]


class FileState(NamedTuple):
    """Identifies a file's content: equal states mean equal content."""

    device: int
    inode: int
    """Differs if another file took its place."""
    size_bytes: int
    modified_ns: int
    changed_ns: int
    """Time of the last change of content or status. Unlike `modified_ns`, no program can set it
    back."""


def file_state(path: Path) -> FileState:
    """The state of a file. Raises OSError."""
    status = path.stat()
    return FileState(
        status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    )


def unfinished(path: Path) -> str | None:
    """A companion file without which the database is incomplete; None if there is none.

    Raises OSError.
    """
    wal = path.with_name(path.name + "-wal")
    if wal.is_file() and wal.stat().st_size:
        return (
            f"the database has changes in {wal.name}; close what has it open, or run"
            " `PRAGMA wal_checkpoint(TRUNCATE)`"
        )
    journal = path.with_name(path.name + "-journal")
    if journal.is_file() and _is_in_force(journal):
        return (
            f"the database has a transaction that did not end in {journal.name}; close what has it"
            " open, or read it once with sqlite3, which undoes the transaction"
        )
    return None


def open_throw_away(
    setup: Sequence[Setup] = (),
    limits: Limits | None = None,
    mysql_tables: Mapping[str, Mapping[str, str]] | None = None,
) -> "SqliteDatabase":
    """Create a database in memory, built by `setup`. Raises DatabaseFailedError.

    With `mysql_tables` (`mysql_dialect.Tables`), the agent's statements are MySQL's, otherwise
    SQLite's.
    """
    return SqliteDatabase(None, setup, limits or Limits(), mysql_tables)


def open_read_only(path: Path, limits: Limits = FILE_LIMITS) -> "SqliteDatabase":
    """Open a file that is only read and must not change meanwhile.

    Writes no companion file. Raises DatabaseFailedError, which names the file.
    """
    path = path.expanduser().absolute()
    if not path.is_file():
        message = f"{path}: there is no such database"
        raise DatabaseFailedError(message)
    if problem := unfinished(path):
        message = f"{path}: {problem}"
        raise DatabaseFailedError(message)
    return SqliteDatabase(path, (), limits)


class SqliteDatabase:
    """One session's database in its own process. Used by one thread at a time."""

    def __init__(
        self,
        path: Path | None,
        setup: Sequence[Setup],
        limits: Limits,
        mysql_tables: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """Open the database. Raises DatabaseFailedError."""
        self._path = path
        self._mysql_tables = mysql_tables
        self._setup = [asdict(statement) for statement in setup]
        self._limits = limits
        self._written: list[str] = []
        self._child: Child | None = None
        self._open()

    def execute(self, sql: str) -> Rows:
        """Execute one statement of the agent. Raises SqlRefusedError, DatabaseFailedError."""
        try:
            answer = self._ask({"op": "execute", "sql": sql})
        except ChildEndedError as error:
            message = (
                "the statement ended the processes that executed it"
                if error.reason == "ended"
                else f"the statement took longer than {self._limits.time_s:g} s and was stopped"
            )
            raise SqlRefusedError(message) from error
        if "failed" in answer:
            message = f"{self._where} cannot be read: {answer['failed']}"
            raise DatabaseFailedError(message)
        if "refused" in answer:
            raise SqlRefusedError(answer["refused"])
        if answer["wrote"]:
            self._written.append(sql)
        return Rows(
            columns=tuple(answer["columns"]),
            rows=tuple(map(tuple, answer["rows"])),
            is_truncated=answer["truncated"],
        )

    def table_rows(self, table: str, columns: Sequence[str]) -> tuple[tuple[Cell, ...], ...]:
        """Every row of a table, in no particular order. Raises DatabaseFailedError."""
        listed = ", ".join(map(quoted, columns))
        try:
            answer = self._ask({"op": "table", "sql": f"SELECT {listed} FROM {quoted(table)}"})
        except ChildEndedError as error:
            message = f"the table {table} cannot be read: {error}"
            raise DatabaseFailedError(message) from error
        if "failed" in answer:
            message = f"the table {table} cannot be read: {answer['failed']}"
            raise DatabaseFailedError(message)
        return tuple(map(tuple, answer["rows"]))

    def close(self) -> None:
        """Discard the database. Idempotent; raises nothing."""
        child, self._child = self._child, None
        if child is None:
            return
        try:
            child.ask({"op": "close"}, GRACE_S)
        except ChildEndedError:
            return
        CHILDREN.give_back(child)

    def _ask(self, request: Fields) -> Fields:
        """Ask the process or, if it ends, a second one. Afterwards the database is open.

        Raises ChildEndedError for a request that used up its time or ended both processes, and
        DatabaseFailedError.
        """
        try:
            return self._ask_once(request)
        except ChildEndedError as error:
            logger.info("the process that executes SQL is replaced: %s", error)
            self._open_again()
            if error.reason == "cpu time":
                raise
        try:
            return self._ask_once(request)
        except ChildEndedError:
            self._open_again()
            raise

    def _ask_once(self, request: Fields) -> Fields:
        if self._child is None:
            message = "the database is closed"
            raise DatabaseFailedError(message)
        try:
            return self._child.ask(request, self._answer_s())
        except ChildEndedError:
            self._child = None
            raise

    @property
    def _where(self) -> str:
        return "the database" if self._path is None else str(self._path)

    def _answer_s(self) -> float:
        return BUSY * self._limits.time_s + GRACE_S

    def _open(self) -> None:
        request: Fields = {
            "op": "open",
            "path": None if self._path is None else str(self._path),
            "limits": asdict(self._limits),
            "setup": self._setup,
            "mysql_tables": self._mysql_tables,
        }
        memory_bytes = self._limits.memory_bytes
        child = CHILDREN.borrow(memory_bytes)
        try:
            answer = child.ask(request, min(self._answer_s(), START_TIME_S))
        except ChildEndedError as kept:
            # An idle process may have been killed or stopped in the meantime.
            logger.info("the process that executes SQL is replaced: %s", kept)
            child = Child(memory_bytes)
            try:
                answer = child.ask(request, START_TIME_S)
            except ChildEndedError as error:
                message = f"{self._where} cannot be opened: {error}"
                raise DatabaseFailedError(message) from error
        if "failed" in answer:
            CHILDREN.give_back(child)
            message = f"{self._where} cannot be opened: {answer['failed']}"
            raise DatabaseFailedError(message)
        self._child = child

    def _open_again(self) -> None:
        self._open()
        for sql in self._written:
            try:
                self._ask_once({"op": "execute", "sql": sql})
            except ChildEndedError as error:
                message = f"the database cannot be built again: {error}"
                raise DatabaseFailedError(message) from error


def quoted(name: str) -> str:
    """Quote an identifier for SQLite."""
    return '"' + name.replace('"', '""') + '"'


def _is_in_force(journal: Path) -> bool:
    with journal.open("rb") as file:
        return file.read(len(JOURNAL_MAGIC)) == JOURNAL_MAGIC

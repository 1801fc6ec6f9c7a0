"""Opens the local log's file to read it, also where this process may write nothing.

SQLite reads a WAL by way of shared memory (`-shm`), which it makes where there is none. On a
read-only mount, or in another user's folder, it cannot. The files next to it decide then:

- a WAL and its `-shm`: SQLite reads them as ever, also while a process writes
- no WAL, or an empty one: the file has everything, and no process has anything else. It is read
  as it is (`immutable`), and `is_overtaken` is true once a process writes again: then discard what
  was read, and open the file again
- a WAL alone, as in a copy without its `-shm`: UnreadableLogError
"""

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

CLOSING_S = 1.0
"""A process that closes the file removes its `-shm` before its WAL, within milliseconds."""
POLL_S = 0.02
PROTOCOL_ATTEMPTS = 6
"""Of opening a file that others keep opening and closing: SQLite gives up one after some ten
seconds ("locking protocol")."""
HELD = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL})
"""Primary codes of SQLite's errors that another process's lock causes."""

Result = TypeVar("Result")


class UnreadableLogError(Exception):
    """The file cannot be read where it is; the text has the reason and what to do."""


class _Content(NamedTuple):
    """What changes when a process writes to the file."""

    wal_bytes: int
    inode: int
    size: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class ReadableLog:
    """The opened file."""

    connection: sqlite3.Connection
    path: Path
    read_as: _Content | None
    """What is read without any lock; None: SQLite guards what is read."""

    def is_overtaken(self) -> bool:
        """Whether what was read may be torn, because a process has written since it was opened."""
        if self.read_as is None:
            return False
        try:
            return _content(self.path) != self.read_as
        except FileNotFoundError:
            return True


def open_to_read(path: Path, timeout_s: float) -> ReadableLog:
    """Open a file that exists. sqlite3.Error, UnreadableLogError, OSError when it has just gone.

    In autocommit mode; the connection may move between threads.
    """
    deadline = time.monotonic() + CLOSING_S
    attempts = PROTOCOL_ATTEMPTS
    while True:
        try:
            # rw never creates the file; ro would make no shared memory where it could be made.
            return ReadableLog(_connect(path, "mode=rw", timeout_s), path, None)
        except sqlite3.OperationalError as error:
            primary = primary_code(error)
            attempts -= 1
            if primary == sqlite3.SQLITE_PROTOCOL and attempts:
                continue
            if primary not in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN} or os.access(
                path.parent, os.W_OK
            ):
                raise
            found = _content(path)
            if not found.wal_bytes and not _beside(path, "-journal").exists():
                return ReadableLog(_connect(path, "mode=ro&immutable=1", timeout_s), path, found)
            if _beside(path, "-shm").exists():
                raise
        if time.monotonic() > deadline:
            message = (
                f"{path.parent} cannot be written, and has a WAL without its -shm file; copy the"
                " folder to where you can write, and read that"
            )
            raise UnreadableLogError(message)
        time.sleep(POLL_S)


def primary_code(error: Exception) -> int:
    """SQLite's code of an error, without what extends it; 0: it is no error of SQLite's."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def why_unread(error: Exception) -> str:
    """Why a file could not be opened or read, with what to do."""
    if primary_code(error) in HELD:
        return f"{error}; another process has it locked: stop it, or resume it if it is paused"
    return f"{error}; correct its permissions, or restore a backup"


def read_log_file(
    path: Path, timeout_s: float, query: Callable[[sqlite3.Connection], Result]
) -> Result:
    """What `query` returns, from one state of the file. Raises as `open_to_read` and `query`."""
    while True:
        log = open_to_read(path, timeout_s)
        with closing(log.connection):
            try:
                result = query(log.connection)
            except sqlite3.Error:
                if not log.is_overtaken():
                    raise
            else:
                if not log.is_overtaken():
                    return result


def _connect(path: Path, how: str, timeout_s: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{how}",
        uri=True,
        timeout=timeout_s,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        # SQLite opens the WAL with the first statement that reads.
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _content(path: Path) -> _Content:
    try:
        wal_bytes = _beside(path, "-wal").stat().st_size
    except FileNotFoundError:
        wal_bytes = 0
    found = path.stat()
    return _Content(wal_bytes, found.st_ino, found.st_size, found.st_mtime_ns)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)

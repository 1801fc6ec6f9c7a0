"""The local log's file as the consumers' reader has it open. Knows no topics, only queries.

It tells when another file is in its place.
"""

import ctypes
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from consumers.errors import CuaProjectError, MismatchError, UnreachableError
from schemas.local_log import FORMAT
from schemas.readable_log import ReadableLog, UnreadableLogError, open_to_read, why_unread

BUSY_TIMEOUT_S = 30.0

Result = TypeVar("Result")


class LocalLogFile:
    """Opened by the first query that finds it. Not thread-safe, but may move between threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log: ReadableLog | None = None
        self._files: list[int | None] = []
        self._log_id = ""

    @property
    def log_id(self) -> str:
        """The file's identity; "" until it exists."""
        self._open()
        return self._log_id

    def ask(self, query: Callable[[sqlite3.Connection], Result], nothing: Result) -> Result:
        """What `query` returns; `nothing` until there is a log. UnreachableError, MismatchError.

        Asked again when a process has written to the file beneath a reader without locks.
        """
        while (log := self._open()) is not None:
            try:
                result = query(log.connection)
            except sqlite3.Error as error:
                if not log.is_overtaken():
                    message = f"the local log {self._path} cannot be read: {error}"
                    raise UnreachableError(message) from error
            else:
                if not log.is_overtaken():
                    return result
            self.check()
            self.close()
        return nothing

    def check(self) -> None:
        """CuaProjectError when the open file is no longer the one at the path."""
        if self._log is None:
            return
        now = files_of(self._path)
        if all(before in {None, one} for before, one in zip(self._files, now, strict=True)):
            return
        leave_open(self._log.connection)
        self._log = None
        message = (
            f"the local log {self._path} was removed or replaced while it was being read; start"
            " the command again"
        )
        raise CuaProjectError(message)

    def close(self) -> None:
        """Close the file. Idempotent."""
        if self._log is not None:
            self._log.connection.close()
            self._log = None

    def _open(self) -> ReadableLog | None:
        if self._log is not None or not self._path.exists():
            return self._log
        problem = f"the local log {self._path} cannot be opened"
        try:
            log = open_to_read(self._path, BUSY_TIMEOUT_S)
            query = "SELECT 1 FROM sqlite_master WHERE name = 'meta'"
            if log.connection.execute(query).fetchone() is None:
                log.connection.close()
                return None
            # As Kafka's reader: a key of any bytes is a key, which names no stream of ours.
            log.connection.text_factory = lambda text: text.decode(errors="backslashreplace")
            meta = dict(log.connection.execute("SELECT name, value FROM meta"))
        except UnreadableLogError as error:
            message = f"{problem}: {error}"
            raise UnreachableError(message) from error
        except (sqlite3.Error, OSError) as error:
            message = f"{problem}: {why_unread(error)}"
            raise UnreachableError(message) from error
        if int(meta["format"]) != FORMAT:
            log.connection.close()
            message = (
                f"the local log {self._path} has format {meta['format']}, this version reads format"
                f" {FORMAT}; use the version that wrote it"
            )
            raise MismatchError(message)
        self._log, self._log_id = log, meta["log_id"]
        self._files = files_of(self._path)
        return log


def files_of(path: Path) -> list[int | None]:
    """Which files the log is, with SQLite's two companions, which stay while a log is open."""
    return [_inode(path.with_name(path.name + suffix)) for suffix in ("", "-wal", "-shm")]


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def leave_open(connection: sqlite3.Connection) -> None:
    """Never close it, not even at the end of the process.

    Closing would write what its removed WAL has into whatever file is in the log's place.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))

"""Opens the local log's file for reading, and tells when another is in its place."""

import ctypes
import sqlite3
from pathlib import Path

from consumers.errors import MismatchError, UnreachableError
from schemas.local_log import FORMAT

BUSY_TIMEOUT_S = 30.0


def open_file(path: Path) -> tuple[sqlite3.Connection, str] | None:
    """A connection that writes nothing, and the log's id; None while the file is no log yet.

    UnreachableError when it cannot be opened; MismatchError for another version's format.
    """
    try:
        # rw never creates the file; ro could not read a WAL without its shared memory.
        uri = f"{path.absolute().as_uri()}?mode=rw"
        connection = sqlite3.connect(
            uri, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
            connection.close()
            return None
        connection.execute("PRAGMA query_only = ON")
        # As Kafka's reader: a key of any bytes is a key, which names no stream of ours.
        connection.text_factory = lambda text: text.decode(errors="backslashreplace")
        meta = dict(connection.execute("SELECT name, value FROM meta"))
    except sqlite3.Error as error:
        problem = f"the local log {path} cannot be opened: {error}"
        message = f"{problem}; correct its rights, or restore a backup"
        raise UnreachableError(message) from error
    if int(meta["format"]) != FORMAT:
        connection.close()
        message = (
            f"the local log {path} has format {meta['format']}, this version reads format"
            f" {FORMAT}; use the version that wrote it"
        )
        raise MismatchError(message)
    return connection, meta["log_id"]


def files_of(path: Path) -> list[int | None]:
    """Which files the log is, with SQLite's two beside it; nobody removes those of an open log."""
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

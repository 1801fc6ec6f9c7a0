"""Opens the local log's SQLite file, and creates it. Knows its layout, not what is written."""

import sqlite3
from pathlib import Path
from uuid import uuid4

from filelock import FileLock

from producer.durable import sync_folder
from producer.errors import LogBrokenError
from schemas.local_log import DDL, FORMAT

BUSY_TIMEOUT_S = 60.0
"""For another process's commit. A commit takes milliseconds; beyond this the disk hangs."""
CHECKPOINT_PAGES = 4000
"""WAL pages (16 MiB) before SQLite copies them into the file: not every few commits in a burst."""


def broken(path: Path, what: str, error: BaseException) -> LogBrokenError:
    """The error for a log that can no longer be used, with what to do."""
    message = (
        f"the local log {path} {what}: {error}. Nothing more is recorded. Make room on its disk or"
        " repair it, then run the same command again: it continues from everything acknowledged"
    )
    return LogBrokenError(message)


def open_for_writing(path: Path) -> sqlite3.Connection:
    """A connection in autocommit mode; every commit is synced.

    Creates folder, file and tables when absent. Raises LogBrokenError.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # One at a time: of two processes that switch a new file to WAL at once, one fails with
        # "locked" whatever the timeout.
        with FileLock(path.with_name("create.lock")):
            connection = _connect(path)
            # Not the file's size: a process killed between the switch to WAL and the tables leaves
            # a file without tables.
            if not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                _create(connection)
                sync_folder(path.parent)
        found = connection.execute("SELECT value FROM meta WHERE name = 'format'").fetchone()
    except (OSError, sqlite3.Error) as error:
        raise broken(path, "cannot be opened", error) from error
    if found is None or int(found[0]) != FORMAT:
        connection.close()
        message = (
            f"the local log {path} has format {found and found[0]}, this cua-train writes {FORMAT};"
            " use the cua-train version that created it"
        )
        raise LogBrokenError(message)
    return connection


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    return connection


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for statement in DDL:
        connection.execute(statement)
    connection.executemany(
        "INSERT INTO meta VALUES (?, ?)", [("log_id", f"local-{uuid4()}"), ("format", str(FORMAT))]
    )
    connection.execute("COMMIT")


def open_for_reading(path: Path) -> sqlite3.Connection:
    """A separate connection; short statements on it never block the writer. LogBrokenError."""
    try:
        connection = sqlite3.connect(
            path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA query_only = ON")
    except sqlite3.Error as error:
        raise broken(path, "cannot be read", error) from error
    return connection

"""Opens the local log's SQLite file, making it when there is none.

Knows its layout (`schemas.local_log`), not what is written.
"""

import sqlite3
from pathlib import Path
from uuid import uuid4

from filelock import FileLock

from producer.durable import sync_folder
from producer.errors import LogBrokenError
from schemas.local_log import DDL, FORMAT

BUSY_TIMEOUT_S = 60.0
"""How long a writer waits for another process's commit; a commit takes milliseconds, so this is a
disk that hangs."""
CHECKPOINT_PAGES = 4000
"""WAL pages before SQLite copies them into the file: 16 MiB, so that a burst is not slowed by a
copy every few commits."""


def broken(path: Path, what: str, error: BaseException) -> LogBrokenError:
    """The error for a log that cannot be used any more, with what to do."""
    message = (
        f"the local log {path} {what}: {error}. Nothing more is recorded. Make room on its disk (or"
        " repair it), then run the same command again: everything that was acknowledged is there,"
        " and it continues"
    )
    return LogBrokenError(message)


def open_for_writing(path: Path) -> sqlite3.Connection:
    """A connection in autocommit mode, every commit synced.

    Makes folder, file and tables when absent. LogBrokenError.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Two processes that switch a new file to WAL at once fail with "locked" whatever the
        # timeout; so one at a time.
        with FileLock(path.with_name("create.lock")):
            connection = _connect(path)
            # Not the file's size: whoever was killed between the switch to WAL and the tables left
            # a file without them.
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
            " use the version that made it"
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
    """A connection of its own that never blocks the writer as long as its statements are short.

    LogBrokenError.
    """
    try:
        connection = sqlite3.connect(
            path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA query_only = ON")
    except sqlite3.Error as error:
        raise broken(path, "cannot be read", error) from error
    return connection

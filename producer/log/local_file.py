"""Opens the local log's SQLite file, creates it, and waits for its write lock.

A commit holds the lock for milliseconds, but a process that is stopped during a commit holds it as
long as it is stopped. So a writer waits, logs the holder, and continues when the lock is free.
"""

import logging
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from producer.durable import sync_file, sync_folder
from producer.errors import LogBrokenError, StopRequestedError
from schemas.local_log import DDL, FORMAT
from schemas.lock_holders import write_lock_holder
from schemas.readable_log import (
    HELD,
    ReadableLog,
    UnreadableLogError,
    open_to_read,
    primary_code,
    why_unread,
)

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
ATTEMPT_S = 1.0
"""SQLite's own wait. Between such waits, a stop request and Ctrl-C are noticed."""
WARN_AFTER_S = 2.0
READ_TIMEOUT_S = 60.0
"""A reader waits only while another process recovers the file after a crash."""
CHECKPOINT_PAGES = 4000
"""WAL pages (16 MiB) before SQLite copies them into the file, so that it does not do so every few
commits in a burst."""


def broken(path: Path, what: str, error: BaseException) -> LogBrokenError:
    """The error for a log that can no longer be used, with advice."""
    for item in (path.parent, path):
        if item.exists() and not os.access(item, os.W_OK):
            return LogBrokenError(
                f"the local log {path} {what}: no permission to write {item}; correct its rights,"
                " or set CUA_HOME to a folder of yours"
            )
    return LogBrokenError(
        f"the local log {path} {what}: {error}. Nothing more is recorded. Make room on its disk or"
        " repair it, then run the same command again: it continues from everything acknowledged"
    )


def open_for_writing(path: Path, stop: threading.Event | None = None) -> sqlite3.Connection:
    """Open a connection in autocommit mode; every commit is synced.

    Creates folder, file and tables if missing. Waits while another process holds the write lock.
    Raises LogBrokenError, and StopRequestedError if `stop` is set while waiting.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            _create_whole(path)
        connection = _connect(path)
        found = when_free(path, lambda: _format(connection), stop)
    except (OSError, sqlite3.Error) as error:
        raise broken(path, "cannot be opened", error) from error
    if found != FORMAT:
        connection.close()
        message = (
            f"the local log {path} has format {found}, this cua-train writes {FORMAT};"
            " use the cua-train version that created it"
        )
        raise LogBrokenError(message)
    return connection


def when_free(
    path: Path, attempt: Callable[[], Result], stop: threading.Event | None = None
) -> Result:
    """Repeat `attempt` as long as another process holds the lock, and return its result.

    `attempt` must leave no transaction open when SQLite reports that the database is busy. After
    WARN_AFTER_S one warning names the holder. Raises StopRequestedError if `stop` is set while
    waiting, and whatever `attempt` raises.
    """
    began = time.monotonic()
    has_warned = False
    while True:
        try:
            result = attempt()
        except sqlite3.OperationalError as error:
            if primary_code(error) not in HELD:
                raise
            if stop is not None and stop.is_set():
                raise StopRequestedError from error
        else:
            if has_warned:
                waited_s = time.monotonic() - began
                logger.warning("the local log %s is free again after %.0f s", path, waited_s)
            return result
        if not has_warned and time.monotonic() - began >= WARN_AFTER_S:
            has_warned = True
            logger.warning(
                "the local log %s is locked by %s. Waiting; events are buffered meanwhile",
                *(path, write_lock_holder(path)),
            )


def _create_whole(path: Path) -> None:
    """Create the complete file under its name, unless another process is faster.

    Takes no lock, so that a process that is stopped meanwhile blocks no other.
    """
    making = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.new")
    try:
        with closing(_connect(making)) as connection:
            _format(connection)
        sync_file(making)
        try:
            path.hardlink_to(making)
        except FileExistsError:
            return
        except OSError:
            # The file system has no hard links.
            if not path.exists():
                making.rename(path)
        sync_folder(path.parent)
    finally:
        making.unlink(missing_ok=True)


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=ATTEMPT_S, isolation_level=None, check_same_thread=False)


def _format(connection: sqlite3.Connection) -> int | None:
    """The file's format version, after creating what an empty file lacks."""
    execute, tables = connection.execute, "SELECT 1 FROM sqlite_master"
    execute("PRAGMA journal_mode = WAL")
    execute("PRAGMA synchronous = FULL")
    execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    if not execute(tables).fetchone():
        execute("BEGIN IMMEDIATE")
        # Another process may have been faster.
        if not execute(tables).fetchone():
            for statement in DDL:
                execute(statement)
            own = [("log_id", f"local-{uuid4()}"), ("format", str(FORMAT))]
            connection.executemany("INSERT INTO meta VALUES (?, ?)", own)
        execute("COMMIT")
    found = execute("SELECT value FROM meta WHERE name = 'format'").fetchone()
    return None if found is None else int(found[0])


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield a separate connection; short statements on it never block the writer.

    Raises LogBrokenError, also at the end: what was read from a file that cannot be locked must not
    be used if another process has written to it meanwhile.
    """
    log: ReadableLog | None = None
    try:
        log = open_to_read(path, READ_TIMEOUT_S)
        with closing(log.connection):
            yield log.connection
    except UnreadableLogError as error:
        raise _not_read(path, str(error)) from error
    except (sqlite3.Error, OSError) as error:
        if log is None or not log.is_overtaken():
            raise _not_read(path, why_unread(error)) from error
    if log is not None and log.is_overtaken():
        raise _not_read(path, "a process began to write to it meanwhile; run the command again")


def _not_read(path: Path, why: str) -> LogBrokenError:
    return LogBrokenError(f"the local log {path} cannot be read: {why}")

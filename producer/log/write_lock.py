"""Waiting for the local log's write lock.

A commit holds it for milliseconds, a process that is stopped inside one for as long as it is
stopped. So a writer waits, logs the holder, and goes on when the lock is free.
"""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from producer.errors import StopRequestedError
from schemas.lock_holders import write_lock_holder

logger = logging.getLogger(__name__)

ATTEMPT_S = 1.0
"""SQLite's own wait; in between, a stop request and Ctrl-C are heard."""
WARN_AFTER_S = 2.0

Result = TypeVar("Result")


def when_free(
    path: Path, attempt: Callable[[], Result], stop: threading.Event | None = None
) -> Result:
    """What `attempt` returns; it is repeated for as long as another process holds the lock.

    `attempt` leaves no transaction behind when SQLite reports that the database is busy. After
    WARN_AFTER_S one warning names the holder. Raises StopRequestedError once `stop` is set while it
    waits, and what `attempt` raises.
    """
    began = time.monotonic()
    has_warned = False
    while True:
        try:
            result = attempt()
        except sqlite3.OperationalError as error:
            if not is_busy(error):
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


def is_busy(error: sqlite3.OperationalError) -> bool:
    """Whether another process's lock is in the way; the low byte of SQLite's extended code."""
    return (getattr(error, "sqlite_errorcode", 0) & 0xFF) == sqlite3.SQLITE_BUSY

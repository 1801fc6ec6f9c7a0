"""One transaction of the live tables in which no projector writes and every reader reads on."""

import time
from collections.abc import Callable
from typing import TypeVar
from uuid import uuid4

from psycopg2.errors import DeadlockDetected, LockNotAvailable

from consumers.database.connection import Cursor, connected, join_group, session_group
from consumers.errors import LimitExceededError
from consumers.projection.lock_watch import LockWatch
from consumers.tables import SCHEMA

LOCKED_S = 600.0
"""How long other sessions' locks are waited for; the replay is lost after that."""
LOCK_TIMEOUT_S = 10
"""Longest wait for one of them, during which projectors wait too. A stopped projector's session is
ended before (`lock_watch.STOPPED_AFTER_S`)."""
ABANDONED_S = 60
"""The server rolls the transaction of a stopped process back after so long between statements."""
SETTINGS = (
    f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT_S}s'; SET LOCAL idle_in_transaction_session_timeout ="
    f" '{ABANDONED_S}s'; SET LOCAL row_security = off; SET LOCAL work_mem = '64MB'"
)

Result = TypeVar("Result")


def while_paused(url: str, work: Callable[[Cursor], Result], locked_s: float = LOCKED_S) -> Result:
    """What `work` returns; its transaction is committed. An error rolls it back.

    Tried again while others hold a lock that it needs; after `locked_s` LimitExceededError, naming
    one of them.
    """
    group = session_group(f"rebuild {uuid4()}")
    deadline = time.monotonic() + locked_s
    with connected(url, "rebuild merge") as connection, LockWatch(url, group) as watch:
        join_group(connection, group)
        while True:
            try:
                with connection, connection.cursor() as cursor:
                    cursor.execute(SETTINGS)
                    _pause_projectors(cursor)
                    return work(cursor)
            except (LockNotAvailable, DeadlockDetected) as error:
                reason = watch.reason or str(error).strip()
            if time.monotonic() >= deadline:
                message = (
                    f"the tables could not be put right within {locked_s:g} s: {reason}; nothing"
                    " was changed"
                )
                ways = (
                    "end that transaction (SELECT pg_terminate_backend(pid))",
                    "run the same command again when it has ended",
                )
                raise LimitExceededError(message, ways=ways)


def _pause_projectors(cursor: Cursor) -> None:
    """Their next transaction waits for the end of this one, and then loads everything again.

    Where there are no positions, no projector works.
    """
    cursor.execute("SELECT to_regclass(%s) IS NOT NULL", (f"{SCHEMA}.reader_position",))
    row = cursor.fetchone()
    if row is not None and row[0]:
        cursor.execute(f"LOCK TABLE {SCHEMA}.reader_position IN EXCLUSIVE MODE")

"""A transaction on the live tables that is tried again while others hold a lock that they need.

No projector writes meanwhile, and every reader reads on.
"""

import logging
import time
from collections.abc import Callable
from typing import TypeVar
from uuid import uuid4

from psycopg2.errors import DeadlockDetected, LockNotAvailable

from consumers.database.blockers import lock_holders
from consumers.database.connection import (
    Connection,
    Cursor,
    connected,
    join_group,
    session_group,
)
from consumers.errors import LimitExceededError
from consumers.projection.lock_watch import LockWatch
from consumers.tables import SCHEMA

logger = logging.getLogger(__name__)

LOCKED_S = 600.0
"""How long other sessions' locks are waited for; the replay is lost after that."""
LOCK_TIMEOUT_S = 10
"""Longest wait for one of them, during which projectors wait too. A stopped projector's session is
ended before (`lock_watch.STOPPED_AFTER_S`)."""
PAUSE_S = 2.0
"""Between two attempts, in which readers and projectors that have queued up go on."""
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
    named: str | None = None
    with connected(url, "rebuild merge") as connection, LockWatch(url, group) as watch:
        join_group(connection, group)
        while True:
            try:
                with connection, connection.cursor() as cursor:
                    cursor.execute(SETTINGS)
                    _pause_projectors(cursor)
                    return work(cursor)
            except (LockNotAvailable, DeadlockDetected) as error:
                reason = watch.reason
                if reason is None:
                    reason = _held_by(connection) or str(error).strip()
                    if reason != named:
                        logger.warning("%s; trying again", reason)
                        named = reason
            if time.monotonic() >= deadline:
                message = (
                    f"other sessions kept the tables locked for {locked_s:g} s: {reason}; no row"
                    " was changed"
                )
                ways = (
                    "end that session (SELECT pg_terminate_backend(PID))",
                    "run the same command again later",
                )
                raise LimitExceededError(message, ways=ways)
            time.sleep(PAUSE_S)


def _held_by(connection: Connection) -> str | None:
    """Who has locked our tables now; who only reads them, where nobody has more."""
    with connection, connection.cursor() as cursor:
        holders = lock_holders(cursor, SCHEMA)
    holders = [holder for holder in holders if holder.locked] or holders
    return f"waiting for {', '.join(map(str, holders))}" if holders else None


def _pause_projectors(cursor: Cursor) -> None:
    """Their next transaction waits for the end of this one, and then loads everything again.

    Where there are no positions, no projector works.
    """
    cursor.execute("SELECT to_regclass(%s) IS NOT NULL", (f"{SCHEMA}.reader_position",))
    row = cursor.fetchone()
    if row is not None and row[0]:
        cursor.execute(f"LOCK TABLE {SCHEMA}.reader_position IN EXCLUSIVE MODE")

"""Who projects: one process per database holds the lease, others wait.

The lease avoids duplicate work; that nothing is applied twice is ensured by the positions alone.
"""

import os
import secrets
import socket
from collections.abc import Callable
from types import TracebackType
from typing import Self

import psycopg2

from consumers.database.connection import Connection, Cursor
from consumers.tables import OPS_SCHEMA, PROJECTION_VERSION

NAME = "projector"
EXPIRES_S = 10
"""A holder that has not renewed for so long is taken for dead; it renews five times in that time.
"""
RENEW_EVERY_S = 2.0

_DEAD = (
    f"(lease.renewed_at < clock_timestamp() - interval '{EXPIRES_S} seconds' OR NOT EXISTS (SELECT"
    " FROM pg_stat_activity AS session WHERE session.pid = lease.backend_pid AND"
    " (session.backend_start = lease.backend_start OR session.backend_start IS NULL)))"
)
"""Expired, or its session is gone: the server notices a killed process at once. The start of
another role's session is hidden."""


class LeaseTakenError(Exception):
    """Another projector holds the lease."""


class ProjectorLease:
    """The lease of one process, as a context manager. Not thread-safe.

    Entering and `renew` raise LeaseTakenError; leaving releases it, or leaves it to expire when the
    server is away.
    """

    def __init__(self, connection: Connection, holder: str, clock: Callable[[], float]) -> None:
        """`connection`: in autocommit; the lease ends with its session. `clock`: seconds."""
        self._connection = connection
        self._holder = holder
        self._clock = clock
        self._renewed_at = float("-inf")

    def __enter__(self) -> Self:
        """Acquire."""
        self.renew()
        return self

    def renew(self, *, at_once: bool = False) -> None:
        """Keep the lease; asks the server every RENEW_EVERY_S, or `at_once`."""
        now = self._clock()
        if now - self._renewed_at < RENEW_EVERY_S and not at_once:
            return
        with self._connection.cursor() as cursor:
            if not acquire(cursor, self._holder):
                holder = current_holder(cursor)
                message = (
                    "another projector is running"
                    f" ({'it has just stopped' if holder is None else holder[0]}); waiting for its"
                    " lease"
                )
                raise LeaseTakenError(message)
        self._renewed_at = now

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release."""
        try:
            with self._connection.cursor() as cursor:
                release(cursor, self._holder)
        except psycopg2.Error:
            pass  # The server is away; the lease ends with the session.


def new_holder() -> str:
    """A unique name for this process: host, process id and a nonce."""
    return f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"


def acquire(cursor: Cursor, holder: str) -> bool:
    """Take the lease for this session, or renew it; False when another holder has it."""
    cursor.execute(
        f"INSERT INTO {OPS_SCHEMA}.lease AS lease (name, holder, backend_pid, backend_start,"
        " renewed_at, projection_version) SELECT %(name)s, %(holder)s, pid, backend_start,"
        " clock_timestamp(), %(version)s FROM pg_stat_activity WHERE pid = pg_backend_pid() ON"
        " CONFLICT (name) DO UPDATE SET holder = excluded.holder, backend_pid ="
        " excluded.backend_pid, backend_start = excluded.backend_start, renewed_at ="
        " excluded.renewed_at, projection_version = excluded.projection_version WHERE lease.holder"
        f" = excluded.holder OR {_DEAD}",
        {"name": NAME, "holder": holder, "version": PROJECTION_VERSION},
    )
    return bool(cursor.rowcount == 1)


def release(cursor: Cursor, holder: str) -> None:
    """Give the lease up, so that a waiting projector need not wait for it to expire."""
    cursor.execute(
        f"DELETE FROM {OPS_SCHEMA}.lease WHERE name = %s AND holder = %s", (NAME, holder)
    )


def current_holder(cursor: Cursor) -> tuple[str, int] | None:
    """The living holder and its projection version; None when no projector runs."""
    cursor.execute(
        f"SELECT holder, projection_version FROM {OPS_SCHEMA}.lease AS lease WHERE name = %s AND"
        f" NOT {_DEAD}",
        (NAME,),
    )
    row = cursor.fetchone()
    return None if row is None else (row[0], row[1])

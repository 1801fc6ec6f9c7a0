"""Who projects: one process per database holds the lease, others wait.

The lease avoids duplicate work; that nothing is applied twice is ensured by the positions alone.
A holder that no longer renews its lease may be stopped inside a transaction; its successor's
`LockWatch` ends the sessions whose locks it waits for.
"""

import contextlib
import os
import secrets
import socket
from collections.abc import Callable
from datetime import datetime
from types import TracebackType
from typing import NamedTuple, Self

import psycopg2

from consumers.database.connection import Connection, Cursor, connected
from consumers.errors import UnreachableError
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


class LeaseHolder(NamedTuple):
    """The lease's row. Times are from the database's clock."""

    holder: str
    is_dead: bool
    silent_s: float
    """Since it renewed the lease."""
    acquired_at: datetime | None

    def __str__(self) -> str:
        """`process 4711 on trainer-3, since 2026-11-22 05:10:11 UTC`."""
        since = (
            "" if self.acquired_at is None else f", since {self.acquired_at:%Y-%m-%d %H:%M:%S} UTC"
        )
        return f"{describe_holder(self.holder)}{since}"


class ProjectorLease:
    """The lease of one process, as a context manager. Not thread-safe.

    `acquire` and `renew` raise LeaseTakenError. Leaving releases it, also after an error that ends
    the process. After an outage it stays, for this process to take again, and is free once this
    process or its session has ended.
    """

    def __init__(self, connection: Connection, holder: str, clock: Callable[[], float]) -> None:
        """`connection`: in autocommit; the lease ends with its session. `clock`: seconds."""
        self._connection = connection
        self._holder = holder
        self._clock = clock
        self._renewed_at = float("-inf")

    def __enter__(self) -> Self:
        """Itself; `acquire` it."""
        return self

    def acquire(self) -> LeaseHolder | None:
        """Take the lease; the dead holder that it was taken from."""
        with self._connection.cursor() as cursor:
            before = read_lease(cursor)
        self.renew(at_once=True)
        is_other = before is not None and before.holder != self._holder
        return before if is_other else None

    def renew(self, *, at_once: bool = False) -> None:
        """Keep the lease; asks the server every RENEW_EVERY_S, or `at_once`."""
        now = self._clock()
        if now - self._renewed_at < RENEW_EVERY_S and not at_once:
            return
        with self._connection.cursor() as cursor:
            if not acquire(cursor, self._holder):
                holder = read_lease(cursor)
                by = "it has just stopped" if holder is None else str(holder)
                message = f"another projector is running ({by}); waiting for its lease"
                raise LeaseTakenError(message)
        self._renewed_at = now

    def note_caught_up(self) -> None:
        """Store that the end of the log was reached, for status."""
        self._note("caught_up_at = clock_timestamp()", ())

    def note_error(self, error: str, seconds_ago: float) -> None:
        """Store what had to be waited out last, for status."""
        self._note(
            "last_error = %s, last_error_at = clock_timestamp() - %s * interval '1 second'",
            (error, seconds_ago),
        )

    def _note(self, assignments: str, values: tuple[object, ...]) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE {OPS_SCHEMA}.lease SET {assignments} WHERE name = %s AND holder = %s",
                (*values, NAME, self._holder),
            )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release, except after an outage, which is waited out, and after an abort."""
        is_outage = isinstance(error, psycopg2.Error | UnreachableError | LeaseTakenError)
        if is_outage or (error is not None and not isinstance(error, Exception)):
            return
        try:
            with self._connection.cursor() as cursor:
                release(cursor, self._holder)
        except psycopg2.Error:
            pass  # The server is away; the lease ends with the session.


def new_holder() -> str:
    """A unique name for this process: host, process id and a nonce."""
    return f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"


def describe_holder(holder: str) -> str:
    """`process 4711 on trainer-3`."""
    host, _, rest = holder.partition("/")
    pid = rest.partition("/")[0]
    return f"process {pid} on {host}" if pid else holder


def read_lease(cursor: Cursor) -> LeaseHolder | None:
    """The holder of the lease, running or not; None: there is none."""
    cursor.execute(
        f"SELECT holder, {_DEAD}, extract(epoch FROM clock_timestamp() - renewed_at)::float,"
        f" acquired_at FROM {OPS_SCHEMA}.lease AS lease WHERE name = %s",
        (NAME,),
    )
    row = cursor.fetchone()
    return None if row is None else LeaseHolder(*row)


def acquire(cursor: Cursor, holder: str) -> bool:
    """Take the lease for this session, or renew it; False when another holder has it."""
    cursor.execute(
        f"INSERT INTO {OPS_SCHEMA}.lease AS lease (name, holder, backend_pid, backend_start,"
        " renewed_at, acquired_at, projection_version) SELECT %(name)s, %(holder)s, pid,"
        " backend_start, clock_timestamp(), clock_timestamp(), %(version)s FROM pg_stat_activity"
        " WHERE pid = pg_backend_pid() ON CONFLICT (name) DO UPDATE SET holder = excluded.holder,"
        " backend_pid = excluded.backend_pid, backend_start = excluded.backend_start, renewed_at ="
        " excluded.renewed_at, projection_version = excluded.projection_version, "
        + ", ".join(
            f"{name} = CASE WHEN lease.holder = excluded.holder THEN lease.{name} ELSE"
            f" excluded.{name} END"
            for name in ("acquired_at", "caught_up_at", "last_error", "last_error_at")
        )
        + f" WHERE lease.holder = excluded.holder OR {_DEAD}",
        {"name": NAME, "holder": holder, "version": PROJECTION_VERSION},
    )
    return bool(cursor.rowcount == 1)


def release(cursor: Cursor, holder: str) -> None:
    """Give the lease up, so that a waiting projector need not wait for it to expire."""
    cursor.execute(
        f"DELETE FROM {OPS_SCHEMA}.lease WHERE name = %s AND holder = %s", (NAME, holder)
    )


def give_back(url: str, holder: str) -> None:
    """Release a lease that was kept over an outage; in one of the database, do nothing."""
    with (
        contextlib.suppress(psycopg2.Error, UnreachableError),
        connected(url, "run, lease") as connection,
        connection,
        connection.cursor() as cursor,
    ):
        release(cursor, holder)


def current_holder(cursor: Cursor) -> tuple[str, int] | None:
    """The living holder and its projection version; None when no projector runs."""
    cursor.execute(
        f"SELECT holder, projection_version FROM {OPS_SCHEMA}.lease AS lease WHERE name = %s AND"
        f" NOT {_DEAD}",
        (NAME,),
    )
    row = cursor.fetchone()
    return None if row is None else (row[0], row[1])

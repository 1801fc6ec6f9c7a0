"""Who projects: one holder per database, others wait.

A lease keeps projectors from doing the same work twice; that nothing is applied twice is the
positions' business alone.
"""

import os
import secrets
import socket

from consumers.database.connection import Cursor
from consumers.tables import OPS_SCHEMA, PROJECTION_VERSION

NAME = "projector"
EXPIRES_S = 10
"""A holder that has said nothing for so long is taken for dead; it renews five times in that time.
"""
RENEW_EVERY_S = 2.0

_DEAD = (
    f"(lease.renewed_at < clock_timestamp() - interval '{EXPIRES_S} seconds' OR NOT EXISTS (SELECT"
    " FROM pg_stat_activity AS session WHERE session.pid = lease.backend_pid AND"
    " (session.backend_start = lease.backend_start OR session.backend_start IS NULL)))"
)
"""Silent, or its session is gone: the server notices a killed process at once. Another role's
session hides its start."""


def new_holder() -> str:
    """A name for this process: who it is, for people, and unlike every other's."""
    return f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"


def acquire(cursor: Cursor, holder: str) -> bool:
    """Take the lease for this session, or renew it; False when another holds it."""
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
    """Give it back, so that whoever waits need not."""
    cursor.execute(
        f"DELETE FROM {OPS_SCHEMA}.lease WHERE name = %s AND holder = %s", (NAME, holder)
    )


def current_holder(cursor: Cursor) -> tuple[str, int] | None:
    """The living holder and its projection's version; None when nobody projects."""
    cursor.execute(
        f"SELECT holder, projection_version FROM {OPS_SCHEMA}.lease AS lease WHERE name = %s AND"
        f" NOT {_DEAD}",
        (NAME,),
    )
    row = cursor.fetchone()
    return None if row is None else (row[0], row[1])

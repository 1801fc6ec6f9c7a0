"""Connections to PostgreSQL for projection, rebuild and verify.

Session settings are fixed, so that a value's text depends on the value alone.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING

import psycopg2
from psycopg2.extensions import connection as Connection  # noqa: N812
from psycopg2.extensions import cursor as Cursor  # noqa: N812

from consumers.database.location import open_watched, sqlalchemy_url, unreachable

if TYPE_CHECKING:
    from sqlalchemy import Engine

__all__ = ["Connection", "Cursor", "connect", "connected", "join_group", "schema_engine"]

NO_LIMITS = {"statement_timeout": "0", "idle_in_transaction_session_timeout": "0"}
"""Limits of a role or a database are meant for people's sessions; a replay takes longer."""

SETTINGS = {
    "timezone": "UTC",
    "datestyle": "ISO,YMD",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "search_path": "public",
    **NO_LIMITS,
    # The server notices within half a minute that our host is gone.
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "25s",
}
"""A row's hash is computed from its text. Our SQL names its schemas; with only `public` in the
search_path, a name without one fails instead of hitting another schema's table."""

WRITER_SETTINGS = {"lock_timeout": "10s", "idle_in_transaction_session_timeout": "20s"}
"""For sessions that change live tables: none waits for a lock or holds one for ever. Their
transactions last seconds, and whoever waits longer than `lock_timeout` tries again."""

ABANDONED_S = 20
"""Idle in a transaction of DDL, whose statements follow each other at once."""

GROUP_CLASS = 0x637561
"""First key of the advisory locks that mark the sessions of one process; the bytes spell "cua"."""


def connect(url: str, purpose: str, settings: Mapping[str, str] | None = None) -> Connection:
    """A connection that pg_stat_activity shows as `cua-project <purpose>`. UnreachableError."""
    fixed = SETTINGS | dict(settings or {})
    try:
        return open_watched(
            url,
            options=" ".join(f"-c {name}={value}" for name, value in fixed.items()),
            application_name=f"cua-project {purpose}",
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
            tcp_user_timeout=25_000,
        )
    except psycopg2.OperationalError as error:
        raise unreachable(url, error) from None


@contextmanager
def connected(
    url: str, purpose: str, settings: Mapping[str, str] | None = None
) -> Iterator[Connection]:
    """A connection that is closed, and its transaction rolled back, on exit."""
    connection = connect(url, purpose, settings)
    try:
        yield connection
    finally:
        connection.close()


def session_group(process: str) -> int:
    """The number by which the sessions of one process are known; from the process's name."""
    return int.from_bytes(sha256(process.encode()).digest()[:4], "big", signed=True)


def join_group(connection: Connection, group: int) -> None:
    """Mark this session as one of the group's: a shared advisory lock, held until it ends.

    `blockers.group_members` finds them, whatever the process that opened them is doing.
    """
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock_shared(%s, %s)", (GROUP_CLASS, group))


def schema_engine(url: str) -> "Engine":
    """An engine without a pool, for migrations and DDL.

    Its transactions lock tables against everybody, so the server ends those of a stopped process.
    """
    from sqlalchemy import create_engine, pool

    def creator() -> Connection:
        connection = open_watched(url)
        # Without a transaction, in which a limit of the role could end this session between two
        # statements.
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(
                "SET statement_timeout = 0; SET idle_in_transaction_session_timeout ="
                f" '{ABANDONED_S}s'"
            )
        connection.autocommit = False
        return connection

    return create_engine(sqlalchemy_url(url), poolclass=pool.NullPool, creator=creator)

"""Connections to PostgreSQL for projection, rebuild and verify.

Session settings are fixed, so that a value's text depends on the value alone.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

import psycopg2
from psycopg2.extensions import connection as Connection  # noqa: N812
from psycopg2.extensions import cursor as Cursor  # noqa: N812

from consumers.database.location import open_watched, sqlalchemy_url, unreachable
from consumers.database.pooler import is_pooled, refuses_options, require_own_session
from consumers.errors import UnreachableError

if TYPE_CHECKING:
    from sqlalchemy import Engine

__all__ = ["AWAY", "Connection", "Cursor", "connect", "connected", "join_group", "schema_engine"]

AWAY = (UnreachableError, psycopg2.OperationalError, psycopg2.InterfaceError)
"""Errors of `connected` and of its session where the server is away or goes away."""
NO_LIMITS = {
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}
"""Limits of a role or a database are meant for people's sessions; a replay takes longer."""
NEWER_LIMITS = ["idle_session_timeout", "transaction_timeout"]
"""The same of PostgreSQL 14 and 17. An older server refuses a session that names them at its start.
"""

SETTINGS = {
    "timezone": "UTC",
    "datestyle": "ISO,YMD",
    "intervalstyle": "postgres",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "array_nulls": "on",
    "quote_all_identifiers": "off",
    "standard_conforming_strings": "on",
    "search_path": "public",
    # What waits for a lock must then see what its holder committed.
    "default_transaction_isolation": "read committed",
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
transactions last seconds; a wait longer than `lock_timeout` is tried again."""

ONLY_IN_NEW_SESSIONS = frozenset({"temp_buffers"})
"""PostgreSQL refuses them once a session has had a temporary table; they are only for speed."""

ABANDONED_S = 20
"""Idle in a transaction of DDL, whose statements follow each other at once."""

GROUP_CLASS = 0x637561
"""First key of the advisory locks that mark the sessions of one process; the bytes spell "cua"."""


def connect(url: str, purpose: str, settings: Mapping[str, str] | None = None) -> Connection:
    """A connection that pg_stat_activity shows as `cua-project <purpose>`. UnreachableError."""
    try:
        return _open(url, f"cua-project {purpose}", settings or {})
    except psycopg2.OperationalError as error:
        raise unreachable(url, error) from None


def _open(url: str, name: str, settings: Mapping[str, str]) -> Connection:
    """A session in which no setting of the role or the database counts that would change ours."""
    fixed = SETTINGS | dict(settings)
    open_session = partial(
        open_watched,
        url,
        application_name=name,
        keepalives_idle=10,
        keepalives_interval=5,
        keepalives_count=3,
        tcp_user_timeout=25_000,
    )
    try:
        connection = open_session(options=_as_options(fixed))
    except psycopg2.OperationalError as error:
        if not refuses_options(error):
            raise
        connection = open_session(options="")
    # Without a transaction, which such a limit could end.
    connection.autocommit = True
    try:
        _fix_settings(connection, url, fixed)
    except BaseException:
        connection.close()
        raise
    connection.autocommit = False
    return connection


def _as_options(settings: Mapping[str, str]) -> str:
    escaped = {name: value.replace(" ", "\\ ") for name, value in settings.items()}
    return " ".join(f"-c {name}={value}" for name, value in escaped.items())


def _fix_settings(connection: Connection, url: str, fixed: Mapping[str, str]) -> None:
    """What the options could not set: a pooler passes none on, and has a session that was used."""
    late = dict[str, str]()
    if is_pooled(connection):
        require_own_session(connection, url)
        late = {name: value for name, value in fixed.items() if name not in ONLY_IN_NEW_SESSIONS}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config(name, '0', false) FROM unnest(%s) AS name WHERE"
            " current_setting(name, true) IS NOT NULL"
            # libpq sends PGTZ and PGDATESTYLE after the options, so that they win.
            " UNION ALL SELECT set_config('timezone', 'UTC', false)"
            " UNION ALL SELECT set_config('datestyle', 'ISO,YMD', false)"
            " UNION ALL SELECT set_config(name, value, false) FROM unnest(%s::text[], %s::text[])"
            " AS late (name, value)",
            (NEWER_LIMITS, list(late), list(late.values())),
        )


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

    `blockers.blockers_of_group` finds them, whatever the process that opened them is doing.
    """
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock_shared(%s, %s)", (GROUP_CLASS, group))


def schema_engine(url: str) -> "Engine":
    """An engine without a pool, for migrations and DDL.

    Its transactions lock tables against everybody, so the server ends those of a stopped process.
    """
    from sqlalchemy import create_engine, pool

    limit = {"idle_in_transaction_session_timeout": f"{ABANDONED_S}s"}

    def creator() -> Connection:
        return _open(url, "cua-project schema", limit)

    return create_engine(sqlalchemy_url(url), poolclass=pool.NullPool, creator=creator)

"""Connections to PostgreSQL for projection, rebuild and verify.

Session settings are fixed, so that a value's text depends on the value alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg2
from psycopg2.extensions import connection as Connection  # noqa: N812
from psycopg2.extensions import cursor as Cursor  # noqa: N812
from sqlalchemy import Engine, create_engine, pool

from consumers.database.location import CONNECT_TIMEOUT_S, libpq_url, sqlalchemy_url, unreachable

__all__ = ["Connection", "Cursor", "connect", "connected", "schema_engine"]

SETTINGS = {
    "timezone": "UTC",
    "datestyle": "ISO,YMD",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "search_path": "public",
}
"""A row's hash is computed from its text. Our SQL names its schemas; with only `public` in the
search_path, a name without one fails instead of hitting another schema's table."""
OPTIONS = " ".join(f"-c {name}={value}" for name, value in SETTINGS.items())


def connect(url: str, purpose: str) -> Connection:
    """A connection that pg_stat_activity shows as `cua-project <purpose>`. UnreachableError."""
    try:
        return psycopg2.connect(
            libpq_url(url),
            options=OPTIONS,
            connect_timeout=CONNECT_TIMEOUT_S,
            application_name=f"cua-project {purpose}",
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
        )
    except psycopg2.OperationalError as error:
        raise unreachable(url, error) from None


@contextmanager
def connected(url: str, purpose: str) -> Iterator[Connection]:
    """A connection that is closed, and its transaction rolled back, on exit."""
    connection = connect(url, purpose)
    try:
        yield connection
    finally:
        connection.close()


def schema_engine(url: str) -> Engine:
    """An engine without a pool, for migrations and DDL."""
    return create_engine(
        sqlalchemy_url(url),
        poolclass=pool.NullPool,
        connect_args={"connect_timeout": CONNECT_TIMEOUT_S},
    )

"""Connections to PostgreSQL as the projection, rebuild and verify use them: psycopg2 itself, or an engine for the schema's tools."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg2
from psycopg2.extensions import connection as Connection  # noqa: N812  # psycopg2 names its class in lower case
from sqlalchemy import Engine, create_engine, make_url, pool

from consumers.errors import UnreachableError

CONNECT_TIMEOUT_S = 5
SETTINGS = {"timezone": "UTC", "datestyle": "ISO, YMD", "extra_float_digits": "1", "bytea_output": "hex", "search_path": "public"}
"""What decides how a value looks as text, so that a row's hash depends on nothing but the row. Our SQL names its schemas."""


def connect(url: str, purpose: str) -> Connection:
    """A connection (libpq's URL or SQLAlchemy's); UnreachableError when the server does not answer."""
    dsn = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    options = " ".join(f"-c {name}={value.replace(' ', chr(92) + ' ')}" for name, value in SETTINGS.items())
    try:
        return psycopg2.connect(
            dsn,
            options=options,
            connect_timeout=CONNECT_TIMEOUT_S,
            application_name=f"cua-project {purpose}",
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
        )
    except psycopg2.OperationalError as error:
        message = f"expected PostgreSQL at {make_url(url).render_as_string()}, found: {str(error).strip()}"
        raise UnreachableError(message) from None


@contextmanager
def connected(url: str, purpose: str) -> Iterator[Connection]:
    """A connection for a while; closed, and so rolled back, on the way out."""
    connection = connect(url, purpose)
    try:
        yield connection
    finally:
        connection.close()


def engine_for(url: str) -> Engine:
    """An engine without a pool, for migrations and for making tables."""
    return create_engine(make_url(url).set(drivername="postgresql+psycopg2"), poolclass=pool.NullPool)

"""Which PostgreSQL this installation's tables are in, and how to get to it.

Knows nothing of the tables.

`DATABASE_URL`; else `POSTGRES_HOST`, `_PORT`, `_DB`, `_USER`, `_PASSWORD` once any of them is set;
else the embedded database, which is started when it does not run. Passwords stay out of every
message: `without_password` is what errors and logs print.
"""

from collections.abc import Mapping

import psycopg2
import psycopg2.extensions
from sqlalchemy import URL, Engine, create_engine, make_url
from sqlalchemy.exc import ArgumentError

from consumers.embedded_postgres.postgres import ensure_running
from consumers.errors import UnreachableError, UsageError
from schemas.installation import Installation, read_installation

DRIVER = "postgresql+psycopg2"
POSTGRES_DEFAULTS: Mapping[str, str] = {
    "POSTGRES_HOST": "localhost",
    "POSTGRES_PORT": "5432",
    "POSTGRES_DB": "training_db",
    "POSTGRES_USER": "training_user",
    "POSTGRES_PASSWORD": "training_password",
}
CONNECT_TIMEOUT_S = 10


def resolve_database(environ: Mapping[str, str], installation: Installation | None = None) -> str:
    """SQLAlchemy's URL of the installation's database; starts the embedded one if that is it.

    UsageError, UnreachableError.
    """
    if configured := configured_url(environ):
        return configured
    home = installation or read_installation(environ)
    return sqlalchemy_url(ensure_running(home.database_dir, environ))


def is_embedded(environ: Mapping[str, str]) -> bool:
    """Whether no database is configured, so that the embedded one serves."""
    return configured_url(environ) is None


def configured_url(environ: Mapping[str, str]) -> str | None:
    """SQLAlchemy's URL of the database that the environment names; None when it names none.

    UsageError: it is no PostgreSQL URL.
    """
    if url := environ.get("DATABASE_URL"):
        return sqlalchemy_url(url)
    if not any(environ.get(name) for name in POSTGRES_DEFAULTS):
        return None
    values = {name: environ.get(name) or default for name, default in POSTGRES_DEFAULTS.items()}
    if not values["POSTGRES_PORT"].isdecimal():
        message = f"expected POSTGRES_PORT to be a number, found {values['POSTGRES_PORT']!r}"
        raise UsageError(message)
    url_object = URL.create(
        DRIVER,
        username=values["POSTGRES_USER"],
        password=values["POSTGRES_PASSWORD"],
        host=values["POSTGRES_HOST"],
        port=int(values["POSTGRES_PORT"]),
        database=values["POSTGRES_DB"],
    )
    return url_object.render_as_string(hide_password=False)


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # The text may hold a password: it is not repeated.
        message = (
            "expected a database URL such as postgresql://user:password@host:5432/database, found"
            " something else"
        )
        raise UsageError(message) from None
    if parsed.drivername.partition("+")[0] not in {"postgresql", "postgres"}:
        message = (
            "expected the URL of a PostgreSQL database (postgresql://...), found"
            f" {parsed.drivername}://..."
        )
        raise UsageError(message)
    return parsed


def sqlalchemy_url(url: str) -> str:
    """Any PostgreSQL URL with the driver that this project uses."""
    return _parse(url).set(drivername=DRIVER).render_as_string(hide_password=False)


def libpq_url(url: str) -> str:
    """Any PostgreSQL URL as psql, pg_dump and psycopg2 take it."""
    return _parse(url).set(drivername="postgresql").render_as_string(hide_password=False)


def without_password(url: str) -> str:
    """A URL for messages."""
    return _parse(url).set(drivername="postgresql").render_as_string(hide_password=True)


def connect(url: str) -> psycopg2.extensions.connection:
    """A psycopg2 connection; UnreachableError says where and what to do."""
    try:
        return psycopg2.connect(libpq_url(url), connect_timeout=CONNECT_TIMEOUT_S)
    except psycopg2.OperationalError as error:
        raise unreachable(url, error) from None


def database_engine(url: str) -> Engine:
    """SQLAlchemy's engine; connects when it is used first.

    A connection that the server closed meanwhile is replaced.
    """
    return create_engine(
        sqlalchemy_url(url), pool_pre_ping=True, connect_args={"connect_timeout": CONNECT_TIMEOUT_S}
    )


def unreachable(url: str, error: Exception) -> UnreachableError:
    """What to tell a user when the database does not answer; the password is in none of it."""
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    password = _parse(url).password
    if password:
        first = first.replace(str(password), "***")
    message = (
        f"expected PostgreSQL at {without_password(url)}, found: {first}; start it or correct"
        " DATABASE_URL / POSTGRES_* (none of them set: an embedded database is used)"
    )
    return UnreachableError(message)

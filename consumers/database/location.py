"""The URL of the PostgreSQL that holds this installation's tables.

`DATABASE_URL`; else `POSTGRES_HOST`, `_PORT`, `_DB`, `_USER`, `_PASSWORD` if any of them is set;
else the embedded database, which is started when it is not running. Messages never contain a
password: they print `without_password(url)`.
"""

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import psycopg2
import psycopg2.extensions

from consumers.database.silence import CONNECT_TIMEOUT_S, WATCH
from consumers.embedded_postgres import connection as embedded
from consumers.embedded_postgres.libpq_variables import libpq_variables
from consumers.errors import MismatchError, UnreachableError, UsageError
from schemas.installation import Installation, names_database, read_installation

if TYPE_CHECKING:
    # Imported where it is used: it takes longer than all else that one query needs.
    from sqlalchemy import URL, Engine

DRIVER = "postgresql+psycopg2"
ENCODING = "UTF8"
_PLAIN = re.compile(
    r"postgres(?:ql)?(?:\+psycopg2)?://"
    r"(?P<rest>(?P<user>[\w.~-]+)(?::[\w.~-]+)?(?P<place>@[\w.-]+(?::[0-9]+)?/[\w.-]+))",
    re.ASCII,
)
"""A URL that everybody reads alike, without SQLAlchemy: nothing is quoted, nothing optional."""
SECRET = re.compile("password|secret", re.IGNORECASE)
"""In the name of a parameter that messages do not show: password, sslpassword,
oauth_client_secret."""
POSTGRES_DEFAULTS: Mapping[str, str] = {
    "POSTGRES_HOST": "localhost",
    "POSTGRES_PORT": "5432",
    "POSTGRES_DB": "training_db",
    "POSTGRES_USER": "training_user",
    "POSTGRES_PASSWORD": "training_password",
}
PARAMETER_REFUSED = "unsupported startup parameter"
"""PgBouncer's words for a parameter that its ignore_startup_parameters does not name."""
PASSING = (
    *("starting up", "shutting down", "recovery mode", "not accepting", "terminating"),
    *("too many", "reserved"),
)
"""In a server's refusal: it will take connections again."""


def resolve_database(environ: Mapping[str, str], installation: Installation | None = None) -> str:
    """SQLAlchemy's URL of the database; starts the embedded one if none is configured.

    UsageError, UnreachableError.
    """
    if configured := configured_url(environ):
        return configured
    from consumers.embedded_postgres.postgres import ensure_running

    home = installation or read_installation(environ)
    return sqlalchemy_url(ensure_running(home.database_dir, environ))


def is_embedded(environ: Mapping[str, str]) -> bool:
    """Whether no database is configured, so that the embedded one is used."""
    return configured_url(environ) is None


def configured_url(environ: Mapping[str, str]) -> str | None:
    """SQLAlchemy's URL of the configured database; None when none is configured.

    UsageError when it is not a PostgreSQL URL.
    """
    if url := environ.get("DATABASE_URL"):
        return sqlalchemy_url(url)
    if not names_database(environ):
        return None
    values = {name: environ.get(name) or default for name, default in POSTGRES_DEFAULTS.items()}
    if not values["POSTGRES_PORT"].isdecimal():
        message = f"POSTGRES_PORT {values['POSTGRES_PORT']!r} is not a number; set it to a port"
        raise UsageError(message)
    user, password, host, name = (
        values[f"POSTGRES_{item}"] for item in ("USER", "PASSWORD", "HOST", "DB")
    )
    port = int(values["POSTGRES_PORT"])
    plain = f"{DRIVER}://{user}:{password}@{host}:{port}/{name}"
    if _PLAIN.fullmatch(plain):
        return plain
    from sqlalchemy import URL

    url_object = URL.create(
        DRIVER,
        username=user,
        password=password,
        host=host,
        port=port,
        database=name,
    )
    return url_object.render_as_string(hide_password=False)


def _parse(url: str) -> "URL":
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # The text may contain a password, so it is not repeated.
        message = (
            "the database URL (DATABASE_URL) is malformed; it looks like"
            " postgresql://user:password@host:5432/database"
        )
        raise UsageError(message) from None
    if parsed.drivername.partition("+")[0] not in {"postgresql", "postgres"}:
        message = (
            f"the database URL (DATABASE_URL) is for {parsed.drivername}; only PostgreSQL"
            " (postgresql://...) is supported"
        )
        raise UsageError(message)
    return parsed


def sqlalchemy_url(url: str) -> str:
    """Any PostgreSQL URL, with the driver that this project uses."""
    if plain := _PLAIN.fullmatch(url):
        return f"{DRIVER}://{plain['rest']}"
    return _parse(url).set(drivername=DRIVER).render_as_string(hide_password=False)


def libpq_url(url: str) -> str:
    """Any PostgreSQL URL as psql, pg_dump and psycopg2 take it."""
    if plain := _PLAIN.fullmatch(url):
        return f"postgresql://{plain['rest']}"
    text = _parse(url).set(drivername="postgresql").render_as_string(hide_password=False)
    # libpq takes a plus for a plus; SQLAlchemy writes one for a space, and %2B for a plus.
    address, question, query = text.partition("?")
    return address + question + query.replace("+", "%20")


def without_password(url: str) -> str:
    """The URL for messages and logs."""
    if plain := _PLAIN.fullmatch(url):
        has_password = plain["rest"] != plain["user"] + plain["place"]
        return f"postgresql://{plain['user']}{':***' * has_password}{plain['place']}"
    parsed = _parse(url).set(drivername="postgresql")
    secret = {name: "***" for name in parsed.query if SECRET.search(name)}
    hidden = parsed.update_query_dict(secret).render_as_string(hide_password=True)
    return hidden.replace("%2A%2A%2A", "***")


def open_watched(url: str, **settings: object) -> psycopg2.extensions.connection:
    """A psycopg2 connection whose server's silence is named. psycopg2's errors.

    Its texts are UTF-8 whatever PGCLIENTENCODING or the role sets. UsageError for a malformed URL;
    MismatchError for a database of another encoding, which would hold other characters than the
    log.
    """
    address = libpq_url(url)
    try:
        psycopg2.extensions.parse_dsn(address)
    except psycopg2.ProgrammingError as error:
        reason = _without_secrets(url, str(error).strip().removeprefix("invalid dsn: "))
        message = f"the database URL (DATABASE_URL) is malformed: {reason}; correct it"
        raise UsageError(message) from None
    with WATCH.opening(address, without_password):
        connection = embedded.connect(
            address, connect_timeout=CONNECT_TIMEOUT_S, client_encoding=ENCODING, **settings
        )
    encoding = connection.info.parameter_status("server_encoding")
    if encoding not in {ENCODING, None}:
        name = connection.info.dbname
        connection.close()
        message = (
            f"the database {name} has the encoding {encoding}, which cannot hold"
            f" every text of the log; create one with ENCODING '{ENCODING}' TEMPLATE template0, and"
            " run `cua-project rebuild` with it"
        )
        raise MismatchError(message)
    WATCH.add(connection, address)
    return connection


def database_engine(url: str) -> "Engine":
    """SQLAlchemy's engine; it connects on first use and replaces connections that broke.

    Its sessions are in UTC: a time of the year 1 or 9999, which an event may state, has no datetime
    in every other time zone, and reading it would fail. They read numbers with every digit.
    """
    from sqlalchemy import create_engine, event

    engine = create_engine(
        sqlalchemy_url(url),
        pool_pre_ping=True,
        creator=lambda: open_watched(url),
    )

    @event.listens_for(engine, "connect")
    def _read_exactly(connection: psycopg2.extensions.connection, _record: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET TIME ZONE 'UTC'; SET extra_float_digits = 1")
        connection.commit()

    return engine


def _without_secrets(url: str, text: str) -> str:
    """A text of the driver's, which may quote what it was given."""
    parsed = _parse(url)
    given = [
        parsed.password,
        *(value for name, value in parsed.query.items() if SECRET.search(name)),
    ]
    for item in given:
        for secret in [item] if isinstance(item, str) else item or []:
            if secret:
                text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", text)
    return text


def unreachable(url: str, error: Exception) -> UnreachableError:
    """The error to raise when PostgreSQL refuses a connection; it never contains the password."""
    # SQLAlchemy wraps the driver's error and prefixes its class.
    reason = str(getattr(error, "orig", None) or error).strip() or type(error).__name__
    first = reason.splitlines()[0].partition(" failed: ")[2] or reason.splitlines()[0]
    first = _without_secrets(url, first)
    has_answered, _, reason = first.rpartition("FATAL:")
    if PARAMETER_REFUSED in reason:
        message = (
            f"the connection pooler at {without_password(url)} refuses a parameter"
            f" ({reason.strip()}); name it in PgBouncer's ignore_startup_parameters, or leave it"
            " out of DATABASE_URL and the environment (PGOPTIONS): docs/roles.md (PgBouncer)"
        )
        return UnreachableError(message, is_refusal=True)
    advice = "correct" if has_answered or first != reason else "start the server, or correct"
    message = (
        f"cannot connect to PostgreSQL at {without_password(url)}: {reason.strip()}; {advice}"
        " DATABASE_URL or POSTGRES_* (unset all of them to use the embedded database)"
    )
    if applied := libpq_variables(os.environ):
        message += f" ({', '.join(applied)} of the environment apply to what these do not give)"
    is_refusal = first != reason and not any(words in reason for words in PASSING)
    return UnreachableError(message, is_refusal=is_refusal)

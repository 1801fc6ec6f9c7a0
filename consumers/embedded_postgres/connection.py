"""Connections to the embedded database, whatever libpq's variables in the shell say.

libpq fills what a connection string does not give from PGSSLMODE, PGHOSTADDR, PGSERVICE and thirty
others, which belong to another server of the user's. Some (PGSERVICE, PGTZ) win over what is given,
so they are hidden, not overridden. For a configured database (DATABASE_URL, POSTGRES_*) they stay
in force, as for every client of PostgreSQL.
"""

import psycopg2
import psycopg2.extensions

from consumers.embedded_postgres.libpq_variables import without_libpq_variables

GIVEN = {"sslmode": "disable", "gssencmode": "disable"}
"""The server listens on loopback only; libpq tries neither first."""

_own: set[str] = set()


def mark_as_own(url: str) -> str:
    """Record that this URL (libpq's) is the embedded database's; returns it."""
    _own.add(url)
    return url


def connect(url: str, **settings: object) -> psycopg2.extensions.connection:
    """psycopg2's connection; to the embedded database, without libpq's variables.

    Thread-safe. In a process of the user's (a notebook) the variables come back afterwards.
    psycopg2's errors.
    """
    connection: psycopg2.extensions.connection
    if url not in _own:
        connection = psycopg2.connect(url, **settings)
        return connection
    with without_libpq_variables():
        connection = psycopg2.connect(url, **GIVEN, **settings)
    return connection

"""Ensures that a database has this version's tables: migrates if it may, otherwise only checks.

A database that is as it should be is only read, without a lock, so that every command works while a
rebuild or a migration runs.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg2

from consumers.database.connection import connected
from consumers.database.revision import Age, look
from consumers.database.shape import (
    describe,
    find_problems,
    require_operations,
    require_whole,
)

logger = logging.getLogger(__name__)


def make_ready(
    url: str, *, embedded: bool, migrate: bool | None = None, mends: bool = False
) -> None:
    """Return once the database has this version's tables.

    `migrate` None: migrate an embedded or an empty database and only check any other; True:
    migrate any; False: only check. `mends`: the caller makes missing tables, columns and so on of
    `cua` again. UnreachableError; MismatchError, with what helps, when the database is at another
    revision or something is missing in it.
    """
    revision = look(url)
    revision.refuse()
    if revision.age in {Age.OLDER, Age.EMPTY}:
        if migrate or (migrate is None and (embedded or is_empty(url))):
            from consumers.database.migrate import migrate as migrate_database

            migrate_database(url)
        else:
            revision.require_current()
    with connected(url, "check") as connection, connection, connection.cursor() as cursor:
        if mends:
            require_operations(cursor)
            return
        problems = find_problems(cursor)
        require_whole(problems)
        if problems:
            logger.warning("%s", describe(problems))


@contextmanager
def naming_what_is_missing(url: str) -> Iterator[None]:
    """Turn the database's error about a table that is gone into one that names what is missing.

    MismatchError, also of a database that was taken to another revision meanwhile.
    """
    try:
        yield
    except psycopg2.ProgrammingError:
        look(url).require_current()
        with connected(url, "check") as connection, connection, connection.cursor() as cursor:
            require_whole(find_problems(cursor))
        raise


def is_empty(url: str) -> bool:
    """Whether the database has no table at all. UnreachableError."""
    with connected(url, "check") as connection, connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT NOT EXISTS (SELECT FROM pg_tables WHERE schemaname NOT IN ('pg_catalog',"
            " 'information_schema'))"
        )
        row = cursor.fetchone()
        return row is not None and bool(row[0])

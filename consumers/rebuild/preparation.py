"""What a rebuild does before it replays: its lock, and `cua_ops`, which no replay gives back."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg2

from consumers.database.connection import Connection, connected, schema_engine
from consumers.database.dependants import kept_by, what_keeps
from consumers.database.migrate import (
    SCHEMA_LOCK,
    inspect_revision,
    newest_revision,
    refuse_during_older_projection,
    schema_busy,
)
from consumers.database.operations import mend_operations
from consumers.database.own_views import refuse_users_own
from consumers.database.revision import Age
from consumers.tables import PREVIOUS_SCHEMA

logger = logging.getLogger(__name__)


@contextmanager
def schema_lock(url: str) -> Iterator[None]:
    """Holds the schema lock; migrations and rebuilds are mutually exclusive."""
    with connected(url, "rebuild lock") as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", (SCHEMA_LOCK,))
            row = cursor.fetchone()
            if row is None or not row[0]:
                raise schema_busy(connection)
            try:
                yield
            finally:
                # The server may take a while to notice that a session was closed.
                with suppress(psycopg2.Error):
                    cursor.execute("SELECT pg_advisory_unlock(%s)", (SCHEMA_LOCK,))


def prepare_database(url: str) -> None:
    """Mend `cua_ops`; refuse, before anything long, what would make the swap fail.

    MismatchError when the database is at another revision; CuaProjectError while an older projector
    works, when other people's objects use `cua_previous`, or when one has the name of a view of
    ours.
    """
    with schema_engine(url).begin() as connection:
        driver_connection: Connection = connection.connection.driver_connection
        with driver_connection.cursor() as cursor:
            revision = inspect_revision(cursor)
            revision.refuse(mends=True)
            if revision.age is not Age.DAMAGED:
                revision.require_current()
            refuse_users_own(cursor)
            refuse_during_older_projection(cursor, "rebuild")
            if keeping := what_keeps(cursor, PREVIOUS_SCHEMA):
                raise kept_by(PREVIOUS_SCHEMA, keeping)
        for text in mend_operations(connection, newest_revision()):
            logger.warning("mended: %s", text)

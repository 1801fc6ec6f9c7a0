"""What a rebuild does before it replays: its lock, what it must refuse, and `cua_ops`."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg2

from consumers.database.connection import Connection, Cursor, connected, schema_engine
from consumers.database.known_revisions import newest_revision
from consumers.database.migrate import SCHEMA_LOCK, refuse_during_older_projection, schema_busy
from consumers.database.operations import mend_operations
from consumers.database.own_views import refuse_users_own
from consumers.database.revision import Age, inspect_revision
from consumers.database.shape import find_problems
from consumers.errors import CuaProjectError
from consumers.rebuild.obstacles import require_mendable
from consumers.tables import OPS_SCHEMA, SCHEMA

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


def lacking_operations(url: str) -> list[str]:
    """What `cua_ops` lacks, in words. UnreachableError."""
    with connected(url, "check") as connection, connection, connection.cursor() as cursor:
        damage = inspect_revision(cursor).damage
        problems = [problem.text for problem in find_problems(cursor, [OPS_SCHEMA])]
    return [*([damage] if damage else []), *problems]


def prepare_database(url: str) -> None:
    """Mend `cua_ops`, which no log gives back; refuse at once what a merge would fail on.

    MismatchError when the database is at another revision; CuaProjectError while an older projector
    works, when a user's object has the name of a part of ours or keeps one from being mended, or
    when row security hides rows from this role.
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
            _refuse_hidden_rows(cursor)
            require_mendable(cursor, find_problems(cursor))
        for text in mend_operations(connection, newest_revision()):
            logger.warning("found and repaired: %s", text)


def _refuse_hidden_rows(cursor: Cursor) -> None:
    cursor.execute(
        "SELECT string_agg(oid::regclass::text, ', ' ORDER BY relname) FROM pg_class WHERE"
        " relnamespace = to_regnamespace(%s) AND relkind = 'r' AND row_security_active(oid)",
        (SCHEMA,),
    )
    row = cursor.fetchone()
    if row is not None and row[0] is not None:
        message = (
            f"row-level security on {row[0]} applies to this role and may hide rows from it;"
            " rebuild as the owner of the tables without FORCE ROW LEVEL SECURITY, or as a role"
            " with BYPASSRLS"
        )
        raise CuaProjectError(message)

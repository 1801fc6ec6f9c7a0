"""What a rebuild does before it replays: its lock, and what it must refuse."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg2

from consumers.database.connection import Cursor, connected
from consumers.database.migrate import SCHEMA_LOCK, refuse_during_older_projection, schema_busy
from consumers.database.own_views import refuse_users_own
from consumers.database.revision import inspect_revision
from consumers.database.shape import find_problems, require_operations
from consumers.errors import CuaProjectError
from consumers.rebuild.obstacles import require_mendable
from consumers.tables import SCHEMA


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


def check_database(url: str) -> None:
    """Refuse at once what a merge would fail on.

    MismatchError when the database is at another revision or lacks something of `cua_ops`;
    CuaProjectError while an older projector works, when a user's object has the name of a part of
    ours or keeps one from being mended, or when row security hides rows from this role.
    """
    with connected(url, "rebuild check") as connection, connection, connection.cursor() as cursor:
        inspect_revision(cursor).require_current()
        require_operations(cursor)
        refuse_users_own(cursor)
        refuse_during_older_projection(cursor, "rebuild")
        _refuse_hidden_rows(cursor)
        require_mendable(cursor, find_problems(cursor))


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

"""What a rebuild does before it replays: its lock, and what it must refuse."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg2

from consumers.database.connection import connected
from consumers.database.migrate import SCHEMA_LOCK, refuse_during_older_projection, schema_busy
from consumers.database.own_views import refuse_users_own
from consumers.database.revision import inspect_revision
from consumers.database.shape import describe, find_problems, require_operations
from consumers.errors import MismatchError


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

    MismatchError when the database is at another revision, lacks something of `cua_ops` or has a
    column that was altered; CuaProjectError while an older projector works, or when a user's object
    has the name of a view of ours.
    """
    with connected(url, "rebuild check") as connection, connection, connection.cursor() as cursor:
        inspect_revision(cursor).require_current()
        require_operations(cursor)
        refuse_users_own(cursor)
        refuse_during_older_projection(cursor, "rebuild")
        problems = find_problems(cursor)
        if any(problem.is_altered for problem in problems):
            raise MismatchError(describe(problems))

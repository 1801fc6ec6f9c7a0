"""Puts a filled schema in the live one's place: one transaction of renames, too short to notice.

The old tables are locked before the names change, so that a reader's transaction comes before or
after the swap and never sees the new tables empty.
"""

import logging
import random
import time
from collections.abc import Callable

from psycopg2.errors import QueryCanceled

from consumers.database.connection import Connection, Cursor
from consumers.errors import CuaProjectError, NotFoundError
from consumers.projection.positions import Positions, load_positions
from consumers.rebuild.permissions import TABLE_NAMES, copy_permissions
from consumers.tables import PREVIOUS_SCHEMA as PREVIOUS
from consumers.tables import SCHEMA

logger = logging.getLogger(__name__)

LOCK_TIMEOUT_MS = 50
"""The longest wait for all locks together, and so the longest that a reader waits behind us."""
ATTEMPTS = 400
"""With pauses of some 50 ms: longer than any reasonable reader's transaction."""


def swap(connection: Connection, filled: str, catch_up: Callable[[Positions], None]) -> None:
    """Make `filled` the live schema; the old one becomes `cua_previous`.

    `catch_up(positions)` must bring the filled schema to at least the live positions; it is called
    while projectors are blocked but readers are not. CuaProjectError, naming the blocking session,
    when the locks cannot be had.
    """
    _drop_previous(connection)

    def attempt(cursor: Cursor) -> None:
        # Projectors wait for this lock, readers do not.
        cursor.execute(f'LOCK TABLE "{SCHEMA}".reader_position IN EXCLUSIVE MODE')
        catch_up(load_positions(cursor, SCHEMA))
        copy_permissions(cursor, SCHEMA, filled)
        _lock_tables(cursor, [SCHEMA])
        _rename(cursor, SCHEMA, PREVIOUS)
        _rename(cursor, filled, SCHEMA)

    _retry(connection, attempt)


def swap_back(connection: Connection) -> None:
    """Make `cua_previous` live, and the live schema `cua_previous`; projectors continue from there.

    NotFoundError when there is none; CuaProjectError when the locks cannot be had.
    """
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT to_regnamespace(%s) IS NOT NULL", (PREVIOUS,))
        row = cursor.fetchone()
    if row is None or not row[0]:
        message = (
            f"there is nothing to go back to: no rebuild has left a schema {PREVIOUS} since the"
            " last migration"
        )
        raise NotFoundError(message)

    def attempt(cursor: Cursor) -> None:
        aside = f"{PREVIOUS}_swapping"
        _lock_tables(cursor, [SCHEMA, PREVIOUS])
        _rename(cursor, SCHEMA, aside)
        _rename(cursor, PREVIOUS, SCHEMA)
        _rename(cursor, aside, PREVIOUS)

    _retry(connection, attempt)


def _retry(connection: Connection, attempt: Callable[[Cursor], None]) -> None:
    """One transaction, tried again while another session holds a lock on the tables."""
    blocker: str | None = None
    for _ in range(ATTEMPTS):
        try:
            with connection, connection.cursor() as cursor:
                attempt(cursor)
        except QueryCanceled:
            connection.rollback()
            if (found := _blocker(connection)) is not None and found != blocker:
                logger.warning("waiting to swap: %s holds a lock on the tables", found)
                blocker = found
            time.sleep(random.uniform(0.02, 0.08))  # noqa: S311  # so as not to beat in time with a reader
        else:
            return
    message = (
        f"the tables stayed locked by {blocker or 'other sessions'}, so they could not be swapped;"
        " end that session and try again"
    )
    raise CuaProjectError(message)


def _rename(cursor: Cursor, schema: str, name: str) -> None:
    cursor.execute(f'ALTER SCHEMA "{schema}" RENAME TO "{name}"')


def _lock_tables(cursor: Cursor, schemas: list[str]) -> None:
    """Lock every table against readers too. QueryCanceled when that takes too long."""
    tables = ", ".join(f'"{schema}"."{name}"' for schema in schemas for name in sorted(TABLE_NAMES))
    cursor.execute(f"SET LOCAL statement_timeout = '{LOCK_TIMEOUT_MS}ms'")
    cursor.execute(f"LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE")
    cursor.execute("SET LOCAL statement_timeout = 0")


def _drop_previous(connection: Connection) -> None:
    connection.rollback()
    with connection, connection.cursor() as cursor:
        cursor.execute(f'DROP SCHEMA IF EXISTS "{PREVIOUS}" CASCADE')


def _blocker(connection: Connection) -> str | None:
    """A session that holds a lock on a live table."""
    with connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT format('process %%s (%%s, %%s)', session.pid, session.usename,"
            " coalesce(nullif(session.application_name, ''), session.state)) FROM pg_locks AS held"
            " JOIN pg_class ON pg_class.oid = held.relation JOIN pg_stat_activity AS session USING"
            " (pid) WHERE held.granted AND pg_class.relnamespace = to_regnamespace(%s) AND held.pid"
            " <> pg_backend_pid() ORDER BY 1 LIMIT 1",
            (SCHEMA,),
        )
        row = cursor.fetchone()
    return None if row is None else str(row[0])

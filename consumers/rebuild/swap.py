"""Puts a filled schema in the live one's place.

One transaction of renames, short enough that no reader notices.

The old tables are locked whole before the names change, so that a reader's transaction lies before
the swap or after it and never sees the new, for it still empty, tables. What readers were allowed
to do, they are allowed after it.
"""

import random
import time
from collections.abc import Callable

from psycopg2 import sql
from psycopg2.errors import QueryCanceled

from consumers.database.connection import Connection, Cursor
from consumers.errors import CuaProjectError, NotFoundError
from consumers.log.reader import TopicPartition
from consumers.projection.positions import Positions, load_positions
from consumers.tables import PREVIOUS_SCHEMA as PREVIOUS
from consumers.tables import ROW_TABLES, SCHEMA, STATE_TABLES

LOCK_TIMEOUT_MS = 50
"""The longest that we queue for all the locks together, and so the longest that a reader waits
behind us."""
ATTEMPTS = 400
"""With pauses of some 50 ms: longer than any reasonable reader's transaction."""

_TABLES = [table.__tablename__ for table in (*ROW_TABLES, *STATE_TABLES)]


def swap(
    connection: Connection,
    filled: str,
    catch_up: Callable[[Positions], None],
    say: Callable[[str], None],
) -> None:
    """Make `filled` the live schema; the old one stays as `cua_previous`.

    `catch_up(positions)` must bring the filled schema to at least the live positions. It is called
    while projectors are held back but readers are not. CuaProjectError, naming who blocks, when the
    locks cannot be had.
    """
    _drop_previous(connection)
    said: str | None = None
    for _ in range(ATTEMPTS):
        try:
            with connection, connection.cursor() as cursor:
                # Readers do not wait for this lock, projectors do.
                cursor.execute(f'LOCK TABLE "{SCHEMA}".reader_position IN EXCLUSIVE MODE')
                catch_up(load_positions(cursor, SCHEMA))
                copy_permissions(cursor, SCHEMA, filled)
                _lock_all(cursor, [SCHEMA])
                cursor.execute(f'ALTER SCHEMA "{SCHEMA}" RENAME TO "{PREVIOUS}"')
                cursor.execute(f'ALTER SCHEMA "{filled}" RENAME TO "{SCHEMA}"')
        except QueryCanceled:
            connection.rollback()
            blocker = _blocker(connection)
            if blocker != said:
                say(f"waiting to swap: {blocker or 'somebody'} holds a lock on the tables")
                said = blocker
            time.sleep(random.uniform(0.02, 0.08))  # noqa: S311  # so that it does not beat in time with a reader
        else:
            return
    message = (
        f"expected to lock the tables for a moment, found them in use by {said or 'somebody'}; end"
        " that session and run the rebuild again"
    )
    raise CuaProjectError(message)


def roll_back(connection: Connection, say: Callable[[str], None]) -> None:
    """Make `cua_previous` live again, and what was live `cua_previous`.

    Projectors go on from where it stands.
    """
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT to_regnamespace(%s) IS NOT NULL", (PREVIOUS,))
        row = cursor.fetchone()
    if row is None or not row[0]:
        message = (
            f"expected the schema {PREVIOUS} of an earlier rebuild, found none: there is nothing to"
            " go back to"
        )
        raise NotFoundError(message)
    aside = f"{PREVIOUS}_swapping"
    for _ in range(ATTEMPTS):
        try:
            with connection, connection.cursor() as cursor:
                _lock_all(cursor, [SCHEMA, PREVIOUS])
                cursor.execute(f'ALTER SCHEMA "{SCHEMA}" RENAME TO "{aside}"')
                cursor.execute(f'ALTER SCHEMA "{PREVIOUS}" RENAME TO "{SCHEMA}"')
                cursor.execute(f'ALTER SCHEMA "{aside}" RENAME TO "{PREVIOUS}"')
        except QueryCanceled:
            connection.rollback()
            time.sleep(random.uniform(0.02, 0.08))  # noqa: S311  # so that it does not beat in time with a reader
        else:
            return
    say(f"blocked by {_blocker(connection)}")
    message = (
        "expected to lock the tables for a moment, found them in use; end those sessions and try"
        " again"
    )
    raise CuaProjectError(message)


def _lock_all(cursor: Cursor, schemas: list[str]) -> None:
    """Lock every table against readers too.

    QueryCanceled when that takes too long: whoever queues behind us waits no longer than we do.
    """
    tables = ", ".join(f'"{schema}"."{table}"' for schema in schemas for table in sorted(_TABLES))
    cursor.execute(f"SET LOCAL statement_timeout = '{LOCK_TIMEOUT_MS}ms'")
    cursor.execute(f"LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE")
    cursor.execute("SET LOCAL statement_timeout = 0")


def _drop_previous(connection: Connection) -> None:
    connection.rollback()
    with connection, connection.cursor() as cursor:
        cursor.execute(f'DROP SCHEMA IF EXISTS "{PREVIOUS}" CASCADE')


def _blocker(connection: Connection) -> str | None:
    """Who holds a lock on a live table."""
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


def copy_permissions(cursor: Cursor, source: str, target: str) -> None:
    """Grants on the schema, its tables and their columns, and default privileges, as the source has them."""
    cursor.execute(
        "SELECT 'SCHEMA', NULL, NULL, acl.grantee::regrole::text, acl.grantee, acl.privilege_type,"
        " acl.is_grantable FROM pg_namespace, aclexplode(nspacl) AS acl WHERE nspname = %(schema)s"
        " UNION ALL SELECT 'TABLE', relname, NULL, acl.grantee::regrole::text, acl.grantee,"
        " acl.privilege_type, acl.is_grantable FROM pg_class, aclexplode(relacl) AS acl WHERE"
        " relnamespace = to_regnamespace(%(schema)s) AND relkind = 'r' UNION ALL SELECT 'COLUMN',"
        " relname, attname, acl.grantee::regrole::text, acl.grantee, acl.privilege_type,"
        " acl.is_grantable FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid,"
        " aclexplode(attacl) AS acl WHERE relnamespace = to_regnamespace(%(schema)s) AND relkind"
        " = 'r'",
        {"schema": source},
    )
    for kind, table, column, role, role_id, privilege, is_grantable in cursor.fetchall():
        if table is not None and table not in _TABLES:
            continue
        what = sql.SQL(privilege)
        if kind == "COLUMN":
            what = sql.SQL("{} ({})").format(what, sql.Identifier(column))
        on = (
            sql.SQL("SCHEMA {}").format(sql.Identifier(target))
            if kind == "SCHEMA"
            else sql.Identifier(target, table)
        )
        _grant(cursor, what, on, role, role_id=role_id, is_grantable=is_grantable)
    _copy_defaults(cursor, source, target)


def _grant(
    cursor: Cursor,
    what: sql.Composable,
    on: sql.Composable,
    role: str,
    *,
    role_id: int,
    is_grantable: bool,
) -> None:
    # regrole quotes a name where it must be quoted; role 0 is everybody.
    grantee = sql.SQL("PUBLIC" if role_id == 0 else role)
    option = sql.SQL(" WITH GRANT OPTION" if is_grantable else "")
    cursor.execute(sql.SQL("GRANT {} ON {} TO {}{}").format(what, on, grantee, option))


def _copy_defaults(cursor: Cursor, source: str, target: str) -> None:
    cursor.execute(
        "SELECT defaclrole::regrole::text, defaclobjtype, acl.grantee::regrole::text, acl.grantee,"
        " acl.privilege_type, acl.is_grantable FROM pg_default_acl, aclexplode(defaclacl) AS acl"
        " WHERE defaclnamespace = to_regnamespace(%s)",
        (source,),
    )
    kinds = {"r": "TABLES", "S": "SEQUENCES", "f": "FUNCTIONS", "T": "TYPES"}
    for owner, kind, role, role_id, privilege, is_grantable in cursor.fetchall():
        grantee = sql.SQL("PUBLIC" if role_id == 0 else role)
        option = sql.SQL(" WITH GRANT OPTION" if is_grantable else "")
        cursor.execute(
            sql.SQL(
                "ALTER DEFAULT PRIVILEGES FOR ROLE {} IN SCHEMA {} GRANT {} ON {} TO {}{}"
            ).format(
                sql.SQL(owner),
                sql.Identifier(target),
                sql.SQL(privilege),
                sql.SQL(kinds[kind]),
                grantee,
                option,
            )
        )


def covers(positions: Positions, live: Positions) -> bool:
    """Whether a schema at `positions` holds everything that the live one does."""
    return all(positions.get(TopicPartition(*place), 0) >= offset for place, offset in live.items())

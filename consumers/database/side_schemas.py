"""The schemas that rebuild and verify make next to the live one, and which of them are left over.

The comment of each states its purpose and whether it is finished, and its maker's session holds an
advisory lock of its name: without that session an unfinished schema is debris. Schemas without our
comment are other people's.
"""

import json
import logging
from typing import NamedTuple

import psycopg2

from consumers.database.connection import Connection, Cursor
from consumers.database.dependants import drop_schema, quoted
from consumers.errors import CuaProjectError

logger = logging.getLogger(__name__)

MARK = "made by cua-project: "
DROP_TIMEOUT_MS = 2_000
"""How long debris is waited for that a dead process's statement still uses; then it stays."""


class SideSchema(NamedTuple):
    """A schema that a rebuild or a verification made."""

    name: str
    purpose: str
    """`rebuild`, `verify`, `into`."""
    is_finished: bool


def mark(cursor: Cursor, side: SideSchema) -> None:
    """Write down what a schema is, in its comment."""
    text = MARK + json.dumps({"finished": side.is_finished, "for": side.purpose})
    cursor.execute(f"COMMENT ON SCHEMA {quoted(side.name)} IS %s", (text,))


def find_side_schemas(cursor: Cursor) -> list[SideSchema]:
    """Every schema that a rebuild or a verification made, by name."""
    cursor.execute(
        "SELECT nspname, coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace WHERE"
        " nspname !~ '^pg_' ORDER BY 1"
    )
    found = []
    for name, comment in cursor.fetchall():
        if comment.startswith(MARK):
            try:
                marked = json.loads(comment.removeprefix(MARK))
                side = SideSchema(name, marked["for"], bool(marked["finished"]))
            except (ValueError, KeyError, TypeError):
                continue
            found.append(side)
    return found


def try_lock(connection: Connection, name: str) -> bool:
    """Take the schema's lock for this session; False while its maker lives."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", (name,))
        row = cursor.fetchone()
        assert row is not None  # noqa: S101  # a SELECT of a function has one row
        return bool(row[0])


def unlock(connection: Connection, name: str) -> None:
    """Give the schema's lock up."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", (name,))


def drop_debris(connection: Connection, but: str | None = None) -> None:
    """Drop what killed processes left unfinished; what cannot be dropped is named and stays.

    `connection`: in autocommit. `but`: the schema that its session has locked for itself.
    """
    with connection.cursor() as cursor:
        unfinished = [side.name for side in find_side_schemas(cursor) if not side.is_finished]
    for name in unfinished:
        if name != but and try_lock(connection, name):
            try:
                drop_side_schema(connection, name)
            except (CuaProjectError, psycopg2.Error) as error:
                reason = str(error).strip()
                logger.warning("%s, left by a killed process, stays: %s", name, reason)
            finally:
                unlock(connection, name)


def drop_side_schema(connection: Connection, name: str) -> None:
    """Drop one, in one transaction. CuaProjectError when others use it; psycopg2's errors."""
    with connection.cursor() as cursor:
        cursor.execute(f"BEGIN; SET LOCAL lock_timeout = {DROP_TIMEOUT_MS}")
        try:
            drop_schema(cursor, name)
        except BaseException:
            cursor.execute("ROLLBACK")
            raise
        cursor.execute("COMMIT")

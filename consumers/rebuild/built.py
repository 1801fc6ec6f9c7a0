"""Schemas that `rebuild --run` and `--until` build for users, and how they are removed."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg2

from consumers.database.connection import connected
from consumers.database.side_schemas import drop_debris, drop_side_schema, find_side_schemas
from consumers.errors import CuaProjectError, NotFoundError, UsageError, did_you_mean
from consumers.rebuild.side_schema import drop_unless_finished, locked_schema, make_tables
from consumers.tables import OPS_SCHEMA, SCHEMA

INTO = "into"
RESERVED = (SCHEMA, OPS_SCHEMA, "public", "information_schema")
MAX_NAME_BYTES = 63
"""PostgreSQL cuts longer names."""


def check_name(schema: str) -> None:
    """UsageError unless PostgreSQL and the live tables leave this name for a new schema."""
    reason = None
    if schema in RESERVED:
        reason = "is in use"
    elif schema.startswith("pg_"):
        reason = "begins with pg_, which PostgreSQL keeps for itself"
    elif not schema or '"' in schema or len(schema.encode()) > MAX_NAME_BYTES:
        reason = f"is not a name of 1 to {MAX_NAME_BYTES} bytes without quotation marks"
    if reason is not None:
        message = f"--into: the schema {schema!r} {reason}; choose another name"
        raise UsageError(message)


@contextmanager
def new_schema(url: str, schema: str) -> Iterator[None]:
    """A new schema with empty tables, dropped on the way out unless it is marked as finished.

    UsageError when it exists, other than as the debris of a killed build.
    """
    with locked_schema(url, schema) as keeper:
        # Its lock is ours: an unfinished one of this name has no maker.
        drop_unless_finished(keeper, schema)
        drop_debris(keeper)
        with keeper.cursor() as cursor:
            cursor.execute("SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = %s)", (schema,))
            row = cursor.fetchone()
            is_ours = any(side.name == schema for side in find_side_schemas(cursor))
        if row is None or row[0]:
            advice = (
                f"`cua-project rebuild --drop {schema}` removes it"
                if is_ours
                else "it was not built by `cua-project rebuild`"
            )
            message = f"the schema {schema} exists ({advice}); name another one with --into"
            raise UsageError(message)
        make_tables(url, schema, INTO)
        try:
            yield
        finally:
            drop_unless_finished(keeper, schema)


def drop_built(url: str, schema: str) -> None:
    """Drop a schema that a rebuild built.

    NotFoundError when there is none; UsageError when it is not ours to drop; CuaProjectError when
    other people's objects use it.
    """
    with connected(url, "rebuild drop") as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_'")
            names = {row[0] for row in cursor.fetchall()}
            ours = {side.name for side in find_side_schemas(cursor)}
        if schema in ours:
            with locked_schema(url, schema):
                try:
                    drop_side_schema(connection, schema)
                except psycopg2.errors.LockNotAvailable:
                    message = f"another session uses the schema {schema}; retry when it is done"
                    raise CuaProjectError(message) from None
            return
        if schema in names or schema.startswith("pg_"):
            message = (
                f"--drop: the schema {schema} was not built by `cua-project rebuild --run` or"
                " `--until`, so it is not dropped"
            )
            raise UsageError(message)
        message = f"there is no schema {schema!r}.{did_you_mean(schema, ours)}".removesuffix(".")
        raise NotFoundError(message)

"""Schemas that `rebuild --run` and `--until` build for users, and how they are removed."""

from consumers.database.connection import connected
from consumers.errors import NotFoundError, UsageError
from consumers.rebuild.preparation import schema_lock
from consumers.rebuild.side_schema import drop_side_schema, our_schemas
from consumers.tables import OPS_SCHEMA, SCHEMA
from schemas.advice import did_you_mean

STAGING = "cua_rebuild"
"""Has a rebuild's replay until it is merged; of one that was killed, until the next rebuild."""
RESERVED = (SCHEMA, OPS_SCHEMA, STAGING, "public", "information_schema")
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


def drop_built(url: str, schema: str) -> None:
    """Drop a schema that a rebuild built.

    NotFoundError when there is none; UsageError when it is not ours to drop; CuaProjectError when
    other people's objects use it.
    """
    with (
        schema_lock(url),
        connected(url, "rebuild drop") as connection,
        connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_'")
        names = {row[0] for row in cursor.fetchall()}
        ours = our_schemas(cursor)
        if schema in ours:
            drop_side_schema(cursor, schema)
            return
    if schema in names or schema.startswith("pg_"):
        message = (
            f"--drop: the schema {schema} was not built by `cua-project rebuild --run` or"
            " `--until`, so it is not dropped"
        )
        raise UsageError(message)
    message = f"there is no schema {schema!r}.{did_you_mean(schema, ours)}".removesuffix(".")
    raise NotFoundError(message)

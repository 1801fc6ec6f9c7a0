"""Schemas that are filled from the log next to the live one: created, finished, and dropped.

The comment of each says whether it is finished; schemas without our comment are other people's.
Whoever makes or drops one holds the schema lock, so an unfinished one is of a killed process.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg2
import sqlalchemy as sa

from consumers.database.connection import Connection, Cursor, connected, schema_engine
from consumers.database.dependants import drop_schema, quoted
from consumers.database.repeatable import write_repeatable
from consumers.errors import CuaProjectError, SchemaBusyError, UsageError
from consumers.tables import ROW_TABLES, STATE_TABLES
from consumers.tables.base import NAMING

logger = logging.getLogger(__name__)

DIALECT = sa.make_url("postgresql+psycopg2://").get_dialect()()
TEMPORARY = "pg_temp"
"""PostgreSQL's name of the schema that has a session's temporary tables."""
UNFINISHED = "made by cua-project: unfinished"
FINISHED = "made by cua-project: finished"
DROP_TIMEOUT_MS = 2_000
"""How long a schema is waited for that others read."""


def our_schemas(cursor: Cursor) -> dict[str, bool]:
    """The schemas that rebuilds made -> whether each is finished."""
    cursor.execute(
        "SELECT nspname, obj_description(oid, 'pg_namespace') = %s FROM pg_namespace WHERE"
        " obj_description(oid, 'pg_namespace') = ANY(%s) ORDER BY 1",
        (FINISHED, [UNFINISHED, FINISHED]),
    )
    return dict(cursor.fetchall())


def _mark(cursor: Cursor, schema: str, comment: str) -> None:
    cursor.execute(f"COMMENT ON SCHEMA {quoted(schema)} IS %s", (comment,))


@contextmanager
def side_schema(url: str, schema: str) -> Iterator[None]:
    """A new schema with empty tables, dropped on the way out unless it is finished.

    The caller holds the schema lock. UsageError when there is a schema of that name, other than
    what a killed process left.
    """
    drop_unfinished(url, schema)
    with connected(url, "rebuild") as connection, connection.cursor() as cursor:
        _refuse_existing(cursor, schema)
    make_tables(url, schema)
    try:
        yield
    finally:
        try:
            drop_unfinished(url, schema)
        except (CuaProjectError, psycopg2.Error) as error:
            logger.warning("the schema %s stays: %s", schema, str(error).strip())


def _refuse_existing(cursor: Cursor, schema: str) -> None:
    cursor.execute("SELECT FROM pg_namespace WHERE nspname = %s", (schema,))
    if cursor.fetchone() is None:
        return
    advice = (
        f"`cua-project rebuild --drop {schema}` removes it, and --into names another one"
        if schema in our_schemas(cursor)
        else "it was not built by `cua-project rebuild`: rename it"
    )
    message = f"the schema {schema} exists; {advice}"
    raise UsageError(message)


def drop_unfinished(url: str, schema: str) -> None:
    """Drop what a process left unfinished. Raises what `drop_side_schema` does."""
    with connected(url, "rebuild") as connection, connection, connection.cursor() as cursor:
        if our_schemas(cursor).get(schema) is False:
            drop_side_schema(cursor, schema)


def drop_side_schema(cursor: Cursor, schema: str) -> None:
    """Drop one in the cursor's transaction. CuaProjectError when others' objects use it.

    SchemaBusyError while a session reads it, as that of a killed rebuild does for a while.
    """
    cursor.execute(f"SET LOCAL lock_timeout = {DROP_TIMEOUT_MS}")
    try:
        drop_schema(cursor, schema)
    except psycopg2.errors.LockNotAvailable:
        message = f"another session uses the schema {schema}; retry when it is done"
        raise SchemaBusyError(message) from None


def make_tables(url: str, schema: str) -> None:
    """Create a new schema with every table and its primary key, without other indexes.

    It is marked as unfinished.

    Every unique key is the natural key that the id hashes, so the primary keys alone refuse what
    all of them would.
    """
    tables, _ = _definitions(schema)
    with schema_engine(url).begin() as connection:
        connection.execute(sa.schema.CreateSchema(schema))
        driver_connection: Connection = connection.connection.driver_connection
        with driver_connection.cursor() as cursor:
            _mark(cursor, schema, UNFINISHED)
        tables.create_all(connection, checkfirst=False)


def make_temporary_tables(connection: Connection) -> None:
    """Create every table with its primary key, for this session alone; nothing outlives it."""
    tables, _ = _definitions(TEMPORARY)
    with connection, connection.cursor() as cursor:
        for table in tables.sorted_tables:
            create = sa.schema.CreateTable(table)
            cursor.execute(str(create.compile(dialect=DIALECT)))


def finish_tables(url: str, schema: str) -> None:
    """Create the other indexes and unique constraints, comments and views, and analyze.

    All are cheaper, or only possible, on full tables. The same transaction marks the schema as
    finished, so that it outlives this process.
    """
    _, late = _definitions(schema)
    with schema_engine(url).begin() as connection:
        for element in late:
            connection.execute(element)
        write_repeatable(connection, schema)
        driver_connection: Connection = connection.connection.driver_connection
        with driver_connection.cursor() as cursor:
            analyze(cursor, schema)
            _mark(cursor, schema, FINISHED)


def analyze(cursor: Cursor, schema: str) -> None:
    """Let the planner know how many rows a filled schema has."""
    for table in (*ROW_TABLES, *STATE_TABLES):
        cursor.execute(f'ANALYZE "{schema}"."{table.__tablename__}"')


def write_views(url: str) -> None:
    """Make views and comments again that the live schema lost."""
    with schema_engine(url).begin() as connection:
        write_repeatable(connection)


def _definitions(schema: str) -> tuple[sa.MetaData, list[sa.schema.ExecutableDDLElement]]:
    """The tables without what can be created afterwards, and the statements that create it."""
    metadata = sa.MetaData(schema=schema, naming_convention=NAMING)
    late: list[sa.schema.ExecutableDDLElement] = []
    for definition in (*ROW_TABLES, *STATE_TABLES):
        live = definition.__table__
        assert isinstance(live, sa.Table)  # noqa: S101  # every class of ours maps a table
        table = live.to_metadata(metadata, schema=schema)
        for commented in (table, *table.columns):
            commented.comment = None  # Written in one statement when the schema is finished.
        if definition in STATE_TABLES:
            continue
        late += [
            sa.schema.CreateIndex(index)
            for index in sorted(table.indexes, key=lambda index: str(index.name))
        ]
        table.indexes.clear()
        unique = [
            constraint
            for constraint in table.constraints
            if isinstance(constraint, sa.UniqueConstraint)
        ]
        late += [
            sa.schema.AddConstraint(constraint, isolate_from_table=True) for constraint in unique
        ]
    return metadata, late

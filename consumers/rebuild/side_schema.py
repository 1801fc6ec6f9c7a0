"""Schemas that are filled from the log next to the live one: created, finished, and dropped."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from uuid import uuid4

import psycopg2
import sqlalchemy as sa

from consumers.database.connection import Connection, Cursor, connected, schema_engine
from consumers.database.lost_session import outage_of
from consumers.database.repeatable import write_repeatable
from consumers.database.side_schemas import (
    SideSchema,
    drop_debris,
    drop_side_schema,
    find_side_schemas,
    mark,
    try_lock,
    unlock,
)
from consumers.errors import CuaProjectError, SchemaBusyError
from consumers.tables import ROW_TABLES, STATE_TABLES
from consumers.tables.base import NAMING

logger = logging.getLogger(__name__)

DIALECT = sa.make_url("postgresql+psycopg2://").get_dialect()()
TEMPORARY = "pg_temp"
"""PostgreSQL's name of the schema that has a session's temporary tables."""


def make_tables(url: str, schema: str, purpose: str) -> None:
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
            mark(cursor, SideSchema(schema, purpose, is_finished=False))
        tables.create_all(connection, checkfirst=False)


def make_temporary_tables(connection: Connection) -> None:
    """Create every table with its primary key, for this session alone; nothing outlives it."""
    tables, _ = _definitions(TEMPORARY)
    with connection, connection.cursor() as cursor:
        for table in tables.sorted_tables:
            create = sa.schema.CreateTable(table)
            cursor.execute(str(create.compile(dialect=DIALECT)))


def finish_tables(url: str, side: SideSchema) -> None:
    """Create the other indexes and unique constraints, comments and views, and analyze.

    All are cheaper, or only possible, on full tables. `side`: written as its mark in the same
    transaction, so that the schema outlives this process.
    """
    _, late = _definitions(side.name)
    with schema_engine(url).begin() as connection:
        for element in late:
            connection.execute(element)
        write_repeatable(connection, side.name)
        driver_connection: Connection = connection.connection.driver_connection
        with driver_connection.cursor() as cursor:
            analyze(cursor, side.name)
            mark(cursor, side)


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


@contextmanager
def side_schema(
    url: str, purpose: str, continued: str | None = None, *, keeps: bool = False
) -> Iterator[str]:
    """A new schema of ours, or `continued` if it is still there; yields its name.

    Dropped on the way out unless marked as finished. `keeps`: nor after an outage, which the caller
    waits out. First drops what killed processes left.
    """
    name = continued or f"cua_{purpose}_{uuid4().hex[:8]}"
    with locked_schema(url, name) as keeper:
        drop_debris(keeper, but=name)
        with keeper.cursor() as cursor:
            is_there = any(side.name == name for side in find_side_schemas(cursor))
        if not is_there:
            make_tables(url, name, purpose)
        try:
            yield name
        except BaseException as error:
            if not keeps or outage_of(error) is None:
                drop_unless_finished(keeper, name)
            raise
        drop_unless_finished(keeper, name)


@contextmanager
def locked_schema(url: str, name: str) -> Iterator[Connection]:
    """Holds the lock that shows that the schema's maker is running; yields the session.

    SchemaBusyError when another process has it.
    """
    with connected(url, f"keep {name}") as keeper:
        keeper.autocommit = True
        if not try_lock(keeper, name):
            message = f"another process is filling the schema {name}; retry when it finishes"
            raise SchemaBusyError(message)
        try:
            yield keeper
        finally:
            # The server may take a while to notice that a session was closed.
            with suppress(psycopg2.Error):
                unlock(keeper, name)


def drop_unless_finished(keeper: Connection, name: str) -> None:
    """Drop an unfinished schema; logs what stays."""
    with keeper.cursor() as cursor:
        found = [side for side in find_side_schemas(cursor) if side.name == name]
    if found and not found[0].is_finished:
        try:
            drop_side_schema(keeper, name)
        except (CuaProjectError, psycopg2.Error) as error:
            logger.warning("the schema %s stays: %s", name, str(error).strip())

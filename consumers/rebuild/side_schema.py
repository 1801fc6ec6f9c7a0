"""Schemas beside the live one, to be filled from the log: created, indexed, and dropped again."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import sqlalchemy as sa

from consumers.database.connection import Connection, connected, schema_engine
from consumers.database.repeatable import write_repeatable
from consumers.tables import ROW_TABLES, SCHEMA, STATE_TABLES
from consumers.tables.base import NAMING

PREFIXES = ("cua_rebuild_", "cua_verify_")


def make_tables(url: str, schema: str) -> None:
    """Create a new schema with every table and its primary key, without other indexes.

    Every unique key is the natural key that the id hashes, so the primary keys alone refuse what
    all of them would.
    """
    tables, _ = _definitions(schema)
    with schema_engine(url).begin() as connection:
        connection.execute(sa.schema.CreateSchema(schema))
        tables.create_all(connection, checkfirst=False)


def finish_tables(url: str, schema: str) -> None:
    """Create the other indexes and unique constraints, comments and views, and analyze.

    All are cheaper, or only possible, on full tables.
    """
    _, late = _definitions(schema)
    with schema_engine(url).begin() as connection:
        for element in late:
            connection.execute(element)
        will_be_live = schema.startswith(PREFIXES)
        write_repeatable(connection, schema, SCHEMA if will_be_live else schema)
        for table in ROW_TABLES:
            connection.execute(sa.text(f'ANALYZE "{schema}"."{table.__tablename__}"'))


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
def side_schema(url: str, prefix: str) -> Iterator[str]:
    """A new schema, dropped on the way out unless it was renamed; yields its name.

    First drops what killed processes left: schemas whose advisory lock is free.
    """
    name = f"{prefix}{uuid4().hex[:8]}"
    with connected(url, "side schema") as keeper:
        keeper.autocommit = True
        _drop_leftovers(keeper)
        _try_lock(keeper, name)
        make_tables(url, name)
        try:
            yield name
        finally:
            keeper.cursor().execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')


def _try_lock(keeper: Connection, name: str) -> bool:
    with keeper.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", (name,))
        row = cursor.fetchone()
        assert row is not None  # noqa: S101  # a SELECT of a function has one row
        return bool(row[0])


def _drop_leftovers(keeper: Connection) -> None:
    with keeper.cursor() as cursor:
        cursor.execute(
            "SELECT nspname FROM pg_namespace WHERE "
            + " OR ".join(["nspname LIKE %s"] * len(PREFIXES)),
            [f"{p}%" for p in PREFIXES],
        )
        for (name,) in cursor.fetchall():
            if _try_lock(keeper, name):
                cursor.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')
                cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", (name,))

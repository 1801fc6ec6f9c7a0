"""A schema beside the live one, to be filled from the log.

Made, found again when its maker died, dropped.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import sqlalchemy as sa

from consumers.database.connection import Connection, connected, schema_engine
from consumers.tables import ROW_TABLES, STATE_TABLES
from consumers.tables.base import NAMING

PREFIXES = ("cua_rebuild_", "cua_verify_")


def new_name(prefix: str) -> str:
    """A name that nobody else uses."""
    return f"{prefix}{uuid4().hex[:8]}"


def make_tables(url: str, schema: str) -> None:
    """The schema with every table of the projection and its primary key, and nothing else yet.

    It must not exist.

    Every unique key is the natural key that the id hashes, so that the primary keys alone refuse
    what all of them would.
    """
    tables, _ = _definitions(schema)
    with schema_engine(url).begin() as connection:
        connection.execute(sa.schema.CreateSchema(schema))
        tables.create_all(connection, checkfirst=False)


def finish_tables(url: str, schema: str) -> None:
    """The other indexes and unique constraints, which cost a third of the time when they are built at once, and the statistics."""
    _, late = _definitions(schema)
    with schema_engine(url).begin() as connection:
        for element in late:
            connection.execute(element)
        for table in ROW_TABLES:
            connection.execute(sa.text(f'ANALYZE "{schema}"."{table.__tablename__}"'))


def _definitions(schema: str) -> tuple[sa.MetaData, list[sa.schema.ExecutableDDLElement]]:
    """The tables in this schema without what can be made later, and the statements that make it."""
    metadata = sa.MetaData(schema=schema, naming_convention=NAMING)
    late: list[sa.schema.ExecutableDDLElement] = []
    for definition in (*ROW_TABLES, *STATE_TABLES):
        live = definition.__table__
        assert isinstance(live, sa.Table)  # noqa: S101  # every class of ours maps a table
        table = live.to_metadata(metadata, schema=schema)
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


def drop_schema(connection: Connection, schema: str) -> None:
    """Drop it, with everything in it; nothing when there is none."""
    connection.rollback()
    with connection, connection.cursor() as cursor:
        cursor.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')


@contextmanager
def side_schema(url: str, prefix: str) -> Iterator[str]:
    """A filled-in-a-moment schema; dropped at the end unless it was renamed.

    What dead processes left is dropped first.

    A session's advisory lock on the name tells the living from the dead.
    """
    name = new_name(prefix)
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

"""Mends the tables of the schema `cua_ops`, which no log can give back.

The rows that are left are kept; a table of rows without a meaning is renamed, not dropped.
"""

import logging
from uuid import uuid4

import sqlalchemy as sa

from consumers.database.connection import Connection
from consumers.database.dependants import create_schema, quoted
from consumers.database.revision import read_found
from consumers.database.shape import Kind, Problem, find_problems, type_name
from consumers.tables import OPS_SCHEMA, OPS_TABLES, Lease

logger = logging.getLogger(__name__)

FILLS = {"made_by": "'unknown'", "made_at": "now()"}
"""Values for a lost column that must not be NULL; without one the rows say nothing any more."""
ASIDE = f"{OPS_SCHEMA}_damaged"
"""Where tables are set aside."""


def mend_operations(connection: sa.Connection, revision: str) -> list[str]:
    """Create what is missing in `cua_ops` and record the revision; returns the problems as text."""
    driver_connection: Connection = connection.connection.driver_connection
    with driver_connection.cursor() as cursor:
        problems = find_problems(cursor, [OPS_SCHEMA])
        found = read_found(cursor)
    connection.execute(sa.text(create_schema(OPS_SCHEMA)))
    damaged = {problem.table for problem in problems}
    for definition in OPS_TABLES:
        table = definition.__table__
        assert isinstance(table, sa.Table)  # noqa: S101  # every class of ours maps a table
        is_there = sa.inspect(connection).has_table(table.name, OPS_SCHEMA)
        if not is_there:
            table.create(connection)
        elif table.name in damaged:
            _mend(connection, table)
    if found != (revision,):
        _stamp(connection, revision)
        problems.append(
            Problem(
                Kind.REVISION,
                OPS_SCHEMA,
                "alembic_version",
                None,
                f"{OPS_SCHEMA}.alembic_version did not say that the revision is {revision}",
                is_fatal=True,
            )
        )
    return [problem.text for problem in problems]


def _stamp(connection: sa.Connection, revision: str) -> None:
    name = quoted(OPS_SCHEMA, "alembic_version")
    connection.execute(sa.text(f"DROP TABLE IF EXISTS {name}"))
    connection.execute(
        sa.text(
            f"CREATE TABLE {name} (version_num VARCHAR(32) NOT NULL, CONSTRAINT"
            " alembic_version_pkc PRIMARY KEY (version_num))"
        )
    )
    connection.execute(sa.text(f"INSERT INTO {name} VALUES (:revision)"), {"revision": revision})


def _mend(connection: sa.Connection, table: sa.Table) -> None:
    """Make a table again, with its rows where they still say enough."""
    name, aside = quoted(OPS_SCHEMA, table.name), quoted(ASIDE, table.name)
    connection.execute(sa.text(create_schema(ASIDE)))
    if sa.inspect(connection).has_table(table.name, ASIDE):
        numbered = f"{table.name}_{uuid4().hex[:8]}"
        connection.execute(sa.text(f"ALTER TABLE {aside} RENAME TO {quoted(numbered)}"))
    connection.execute(sa.text(f"ALTER TABLE {name} SET SCHEMA {ASIDE}"))
    table.create(connection)
    left = {column["name"] for column in sa.inspect(connection).get_columns(table.name, ASIDE)}
    values = {
        column.name: f"{quoted(column.name)}::text::{type_name(column)}"
        if column.name in left
        else FILLS.get(column.name)
        for column in table.columns
        if column.name in left or (not column.nullable and column.identity is None)
    }
    try:
        with connection.begin_nested():
            if table is Lease.__table__ or None in values.values():
                is_empty = connection.scalar(sa.text(f"SELECT count(*) FROM {aside}")) == 0
            else:
                names = ", ".join(quoted(column) for column in values)
                taken = ", ".join(str(value) for value in values.values())
                connection.execute(
                    sa.text(f"INSERT INTO {name} ({names}) SELECT {taken} FROM {aside}")
                )
                is_empty = True
    except sa.exc.DBAPIError:
        is_empty = False
    if not is_empty and table is not Lease.__table__:
        logger.warning(
            "the rows of %s no longer say what operators decided; they are kept as %s", name, aside
        )
        return
    for column in table.columns:
        if column.identity is not None and column.name in left:
            connection.execute(
                sa.text(
                    f"SELECT setval(pg_get_serial_sequence('{name}', '{column.name}'),"
                    f" (SELECT coalesce(max({quoted(column.name)}), 0) + 1 FROM {name}), false)"
                )
            )
    connection.execute(sa.text(f"DROP TABLE {aside}"))
    if not sa.inspect(connection).get_table_names(ASIDE):
        connection.execute(sa.text(f"DROP SCHEMA {ASIDE}"))

"""Mends the schema `cua_ops`: a damaged lease is made anew, and nobody holds it then."""

import sqlalchemy as sa

from consumers.database.connection import Connection
from consumers.database.dependants import create_schema, quoted
from consumers.database.revision import read_found
from consumers.database.shape import Kind, Problem, find_problems
from consumers.tables import OPS_SCHEMA, OPS_TABLES


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
        if is_there and table.name in damaged:
            connection.execute(sa.text(f"DROP TABLE {quoted(OPS_SCHEMA, table.name)}"))
        if not is_there or table.name in damaged:
            table.create(connection)
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

"""The tables that the last rebuild replaced, which only `rebuild --rollback` needs.

Objects that users added are theirs: nothing is dropped while one of those depends on it.
"""

from typing import NamedTuple

from psycopg2.errors import LockNotAvailable

from consumers.database.connection import Connection, connected
from consumers.database.dependants import drop_schema
from consumers.database.migrate import database_revision, inspect_revision, schema_connection
from consumers.errors import CuaProjectError
from consumers.tables import PREVIOUS_SCHEMA


class PreviousTables(NamedTuple):
    """What is there."""

    num_tables: int
    size: int


def find_previous(url: str) -> PreviousTables:
    """The tables before the last rebuild; none: 0.

    MismatchError of a database that is newer than this code; UnreachableError.
    """
    with connected(url, "gc") as connection, connection.cursor() as cursor:
        inspect_revision(cursor).refuse(mends=True)
        cursor.execute(
            "SELECT count(*), coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
            " WHERE relnamespace = to_regnamespace(%s) AND relkind IN ('r', 'p')",
            (PREVIOUS_SCHEMA,),
        )
        count, size = cursor.fetchone()
        return PreviousTables(count, int(size))


def drop_previous(url: str) -> None:
    """Drop them in one transaction.

    CuaProjectError, naming it, when something of the users' depends on them or lies in their
    schema, when a query still reads them, or while a rebuild runs; MismatchError as `find_previous`
    raises. Then nothing is dropped.
    """
    with schema_connection(url) as connection:
        database_revision(connection).refuse(mends=True)
        driver_connection: Connection = connection.connection.driver_connection
        try:
            with driver_connection.cursor() as cursor:
                drop_schema(cursor, PREVIOUS_SCHEMA)
        except LockNotAvailable:
            message = f"a query still reads {PREVIOUS_SCHEMA}; try again when it has finished"
            raise CuaProjectError(message) from None

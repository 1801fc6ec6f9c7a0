"""The tables that the last rebuild replaced, which only `rebuild --rollback` needs.

What users put beside or onto them is theirs: nothing is dropped while it depends on them.
"""

from typing import NamedTuple

import psycopg2
import sqlalchemy as sa
from psycopg2.errors import DependentObjectsStillExist, LockNotAvailable
from sqlalchemy.exc import DBAPIError

from consumers.database.connection import connected
from consumers.database.migrate import database_revision, inspect_revision, schema_connection
from consumers.errors import CuaProjectError
from consumers.tables import PREVIOUS_SCHEMA, Base

OURS = frozenset(table.name for table in Base.metadata.tables.values())


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
        names = connection.scalars(
            sa.text(
                "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(:schema) AND"
                " relkind IN ('r', 'p') ORDER BY 1"
            ),
            {"schema": PREVIOUS_SCHEMA},
        ).all()
        theirs = [f"table {PREVIOUS_SCHEMA}.{name}" for name in names if name not in OURS]
        theirs += _publications(connection)
        if theirs:
            raise _depends("; ".join(theirs))
        tables = ", ".join(f'{PREVIOUS_SCHEMA}."{name}"' for name in names)
        try:
            if tables:
                # One statement and RESTRICT: what references them and is not among them refuses it.
                connection.execute(sa.text(f"DROP TABLE {tables} RESTRICT"))
            connection.execute(sa.text(f"DROP SCHEMA IF EXISTS {PREVIOUS_SCHEMA} RESTRICT"))
        except DBAPIError as error:
            _raise(error.orig)
            raise


def _publications(connection: sa.Connection) -> list[str]:
    """Publications of users that name the tables: dropping a table takes it out without a word."""
    return [
        f"publication {name}"
        for name in connection.scalars(
            sa.text(
                "SELECT DISTINCT pubname FROM pg_publication_tables WHERE schemaname = :schema AND"
                " pubname IN (SELECT pubname FROM pg_publication WHERE NOT puballtables)"
            ),
            {"schema": PREVIOUS_SCHEMA},
        )
    ]


def _raise(error: object) -> None:
    if isinstance(error, DependentObjectsStillExist):
        raise _depends((error.diag.message_detail or str(error)).replace("\n", "; ")) from None
    if isinstance(error, LockNotAvailable):
        message = f"a query still reads {PREVIOUS_SCHEMA}; try again when it has finished"
        raise CuaProjectError(message) from None
    if isinstance(error, psycopg2.ProgrammingError):
        message = f"{PREVIOUS_SCHEMA} cannot be dropped: {str(error).splitlines()[0]}"
        raise CuaProjectError(message) from None


def _depends(what: str) -> CuaProjectError:
    return CuaProjectError(
        f"{PREVIOUS_SCHEMA} is not dropped, because something that is not ours depends on it:"
        f" {what}; drop or move that first, or collect the rest with --only blobs --only spool"
    )

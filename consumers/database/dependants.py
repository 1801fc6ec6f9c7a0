"""Makes and drops schemas of ours; what other people put in one, or made of one, stays."""

from psycopg2.errors import DependentObjectsStillExist

from consumers.database.connection import Cursor
from consumers.database.own_views import drop_views
from consumers.errors import CuaProjectError
from consumers.tables import ROW_TABLES, STATE_TABLES

TABLE_NAMES = tuple(str(table.__tablename__) for table in (*ROW_TABLES, *STATE_TABLES))
"""The tables of a projected schema."""


def create_schema(name: str) -> str:
    """SQL that creates a schema unless there is one.

    CREATE SCHEMA IF NOT EXISTS needs CREATE on the database also where the schema exists.
    """
    return (
        f"DO $$ BEGIN IF to_regnamespace('{name}') IS NULL THEN CREATE SCHEMA {name}; END IF;"
        " END $$"
    )


def drop_schema(cursor: Cursor, schema: str) -> None:
    """Drop our tables and views of a schema and the schema, and nothing else.

    A missing one is no error. CuaProjectError, naming them, when other people's objects are in it
    or depend on it; the transaction is then of no more use.
    """
    cursor.execute(
        "SELECT format('%%I.%%I', nspname, relname) FROM pg_class JOIN pg_namespace ON"
        " pg_namespace.oid = relnamespace WHERE nspname = %s AND relkind = 'r' AND relname ="
        " ANY(%s)",
        (schema, list(TABLE_NAMES)),
    )
    tables = ", ".join(row[0] for row in cursor.fetchall())
    try:
        drop_views(cursor, schema)
        if tables:
            cursor.execute(f"DROP TABLE {tables} RESTRICT")
        cursor.execute(f"DROP SCHEMA IF EXISTS {quoted(schema)} RESTRICT")
    except DependentObjectsStillExist as error:
        detail = str(error.diag.message_detail or error).replace("\n", "; ")
        message = (
            f"other objects still depend on the schema {schema}: {detail}; drop or move"
            " those objects, then run the same command again"
        )
        raise CuaProjectError(message) from None


def quoted(*names: str) -> str:
    """A name, with its schema in front, quoted for SQL."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)

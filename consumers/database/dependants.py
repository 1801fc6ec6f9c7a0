"""What other people's objects hang on our tables, found in PostgreSQL's own record of dependencies.

Whatever depends on a table, its columns, constraints, indexes or row type is found, also kinds that
this code does not know.
"""

from typing import NamedTuple

from psycopg2.errors import DependentObjectsStillExist

from consumers.database.connection import Cursor
from consumers.database.own_views import SIGNATURE, own_functions, own_views
from consumers.errors import CuaProjectError
from consumers.tables import ROW_TABLES, STATE_TABLES

TABLE_NAMES = tuple(str(table.__tablename__) for table in (*ROW_TABLES, *STATE_TABLES))
"""The tables of a projected schema."""

TABLES = (
    "tables AS (SELECT pg_class.oid, reltype FROM pg_class JOIN"
    " pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = %(schema)s AND relkind = 'r'"
    " AND relname = ANY(%(names)s))"
)
"""SQL: our tables of a schema, as a common table expression."""

_PARTS = (
    f"WITH {TABLES}, parts AS (SELECT 'pg_class'::regclass::oid AS classid, oid AS objid FROM"
    " tables UNION ALL SELECT 'pg_class'::regclass, indexrelid FROM pg_index WHERE indrelid IN"
    " (SELECT oid FROM tables UNION ALL SELECT reltoastrelid FROM pg_class WHERE oid IN (SELECT oid"
    " FROM tables)) UNION ALL SELECT 'pg_class'::regclass, reltoastrelid FROM pg_class"
    " WHERE oid IN (SELECT oid FROM tables) UNION ALL SELECT 'pg_constraint'::regclass, oid FROM"
    " pg_constraint WHERE conrelid IN (SELECT oid FROM tables) UNION ALL SELECT"
    " 'pg_attrdef'::regclass, oid FROM pg_attrdef WHERE adrelid IN (SELECT oid FROM tables) UNION"
    " ALL SELECT 'pg_type'::regclass, oid FROM pg_type WHERE oid IN (SELECT reltype FROM tables) OR"
    " typelem IN (SELECT reltype FROM tables)) "
)


class Dependant(NamedTuple):
    """One object that is not ours and depends on one of our tables."""

    what: str
    """In PostgreSQL's words: `view public.best`."""
    on: str
    """What of ours it depends on."""
    is_attached: bool
    """Part of the table: PostgreSQL drops it with the table without being asked."""


def find_dependants(cursor: Cursor, schema: str) -> list[Dependant]:
    """Every object of others that depends on our tables in a schema, by name."""
    cursor.execute(
        _PARTS + "SELECT coalesce((SELECT"
        " pg_describe_object('pg_class'::regclass, ev_class, 0) FROM pg_rewrite WHERE"
        " depend.classid = 'pg_rewrite'::regclass AND pg_rewrite.oid = depend.objid AND rulename ="
        " '_RETURN'), pg_describe_object(depend.classid, depend.objid, depend.objsubid)) AS what,"
        " min(pg_describe_object(depend.refclassid, depend.refobjid, 0)), bool_or(depend.deptype IN"
        " ('a', 'i') AND NOT EXISTS (SELECT FROM pg_trigger WHERE depend.classid ="
        " 'pg_trigger'::regclass AND pg_trigger.oid = depend.objid AND tgrelid NOT IN (SELECT oid"
        " FROM tables))) FROM pg_depend AS depend JOIN parts ON depend.refclassid = parts.classid"
        " AND depend.refobjid = parts.objid WHERE NOT EXISTS (SELECT FROM parts AS own WHERE"
        " own.classid = depend.classid AND own.objid = depend.objid) AND NOT EXISTS (SELECT FROM"
        " pg_trigger WHERE depend.classid = 'pg_trigger'::regclass AND pg_trigger.oid ="
        " depend.objid AND tgisinternal) GROUP BY depend.classid, depend.objid, 1 ORDER BY 1",
        {"schema": schema, "names": list(TABLE_NAMES)},
    )
    return [Dependant(*row) for row in cursor.fetchall()]


def find_strangers(cursor: Cursor, schema: str) -> list[str]:
    """Objects of others that are in a schema, in PostgreSQL's words."""
    cursor.execute(
        "SELECT pg_describe_object(classid, objid, 0) AS what FROM pg_depend WHERE refclassid ="
        " 'pg_namespace'::regclass AND refobjid = (SELECT oid FROM pg_namespace WHERE nspname ="
        " %(schema)s) AND deptype = 'n' AND NOT (classid = 'pg_class'::regclass AND objid IN"
        " (SELECT oid FROM pg_class WHERE (relkind = 'r' AND relname = ANY(%(names)s)) OR (relkind"
        " = 'v' AND relname = ANY(%(views)s)))) AND NOT (classid = 'pg_proc'::regclass AND objid IN"
        f" (SELECT oid FROM pg_proc WHERE {SIGNATURE} = ANY(%(functions)s))) ORDER BY 1",
        {
            "schema": schema,
            "names": list(TABLE_NAMES),
            "views": own_views(cursor, schema),
            "functions": own_functions(cursor, schema),
        },
    )
    return [row[0] for row in cursor.fetchall()]


def what_keeps(cursor: Cursor, schema: str) -> list[str]:
    """What would have to go before a schema of ours can be dropped; empty: it is all ours."""
    return [
        *find_strangers(cursor, schema),
        *(
            f"{dependant.what} (reads {dependant.on})"
            for dependant in find_dependants(cursor, schema)
            if not dependant.is_attached
        ),
        *_publications(cursor, schema),
    ]


def _publications(cursor: Cursor, schema: str) -> list[str]:
    """Those that list our tables by name: dropping a table takes it out without a word."""
    cursor.execute(
        f"WITH {TABLES} SELECT DISTINCT format('publication %%I', pubname) FROM tables JOIN"
        " pg_publication_rel ON prrelid = tables.oid JOIN pg_publication ON pg_publication.oid ="
        " prpubid ORDER BY 1",
        {"schema": schema, "names": list(TABLE_NAMES)},
    )
    return [row[0] for row in cursor.fetchall()]


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

    A missing one is no error.

    CuaProjectError, naming them, when other people's objects are in it or depend on it.
    """
    cursor.execute(
        "SELECT format('%%I.%%I', nspname, relname) FROM pg_class JOIN pg_namespace ON"
        " pg_namespace.oid = relnamespace WHERE nspname = %s AND relkind = 'r' AND relname ="
        " ANY(%s)",
        (schema, list(TABLE_NAMES)),
    )
    tables = ", ".join(row[0] for row in cursor.fetchall())
    if keeping := what_keeps(cursor, schema):
        raise kept_by(schema, keeping)
    try:
        drop_views(cursor, schema)
        if tables:
            cursor.execute(f"DROP TABLE {tables} RESTRICT")
        cursor.execute(f"DROP SCHEMA IF EXISTS {quoted(schema)} RESTRICT")
    except DependentObjectsStillExist as error:
        raise kept_by(schema, [str(error.diag.message_detail or error)]) from None


def drop_views(cursor: Cursor, schema: str) -> None:
    """Drop our views and their functions. DependentObjectsStillExist when users' read them."""
    # Views first: they read the functions.
    cursor.execute(
        "SELECT format('DROP VIEW %%I.%%I RESTRICT', nspname, relname) FROM pg_class JOIN"
        " pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = %(schema)s AND relkind ="
        " 'v' AND relname = ANY(%(views)s) UNION ALL SELECT format('DROP FUNCTION %%s RESTRICT',"
        " pg_proc.oid::regprocedure) FROM pg_proc JOIN pg_namespace ON pg_namespace.oid ="
        f" pronamespace WHERE nspname = %(schema)s AND {SIGNATURE} = ANY(%(functions)s)",
        {
            "schema": schema,
            "views": own_views(cursor, schema),
            "functions": own_functions(cursor, schema),
        },
    )
    for (statement,) in cursor.fetchall():
        cursor.execute(statement)


def kept_by(schema: str, keeping: list[str]) -> CuaProjectError:
    """The error of a schema that cannot be dropped."""
    return CuaProjectError(
        f"the schema {schema} is still used by what is not ours: {'; '.join(keeping)}; drop it or"
        " move it elsewhere, then run the same command again"
    )


def quoted(*names: str) -> str:
    """A name, with its schema in front, quoted for SQL."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)

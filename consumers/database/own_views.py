"""Finds users' objects in our schemas that have the name of one of our views or functions.

We write a comment on every view and function that we make; one without a comment is a user's, and
neither replaced nor dropped.
"""

from consumers.database.connection import Cursor
from consumers.errors import CuaProjectError
from consumers.tables import SCHEMA
from consumers.tables.views import FUNCTION_SIGNATURES, VIEW_NAMES

SIGNATURE = "proname || '(' || oidvectortypes(proargtypes) || ')'"
"""SQL: a function's name and the types of its arguments."""


def users_own(cursor: Cursor, schema: str = SCHEMA) -> list[str]:
    """What has a name of ours in a schema and is not ours, in PostgreSQL's words."""
    cursor.execute(
        "SELECT pg_describe_object('pg_class'::regclass, oid, 0) FROM pg_class WHERE relnamespace ="
        " to_regnamespace(%(schema)s) AND relname = ANY(%(views)s) AND (relkind <> 'v' OR"
        " obj_description(oid, 'pg_class') IS NULL) UNION ALL SELECT"
        " pg_describe_object('pg_proc'::regclass, oid, 0) FROM pg_proc WHERE pronamespace ="
        f" to_regnamespace(%(schema)s) AND {SIGNATURE} = ANY(%(functions)s) AND"
        " obj_description(oid, 'pg_proc') IS NULL ORDER BY 1",
        {
            "schema": f'"{schema}"',
            "views": list(VIEW_NAMES),
            "functions": list(FUNCTION_SIGNATURES),
        },
    )
    return [row[0] for row in cursor.fetchall()]


def refuse_users_own(cursor: Cursor, schema: str = SCHEMA) -> None:
    """CuaProjectError, naming it, when something of a user's has a name of ours."""
    if found := users_own(cursor, schema):
        message = (
            f"{', '.join(found)} is not ours, and a view or function of cua-train has that name;"
            " nothing was changed: drop or rename it, then run `cua-project migrate`"
        )
        raise CuaProjectError(message)


def drop_views(cursor: Cursor, schema: str) -> None:
    """Drop our views and their functions. DependentObjectsStillExist when users' read them."""
    # Views first: they read the functions.
    cursor.execute(
        "SELECT format('DROP VIEW %%s RESTRICT', oid::regclass) FROM pg_class WHERE relnamespace ="
        " to_regnamespace(%(schema)s) AND relkind = 'v' AND relname = ANY(%(views)s) AND"
        " obj_description(oid, 'pg_class') IS NOT NULL UNION ALL SELECT format('DROP FUNCTION %%s"
        " RESTRICT', oid::regprocedure) FROM pg_proc WHERE pronamespace ="
        f" to_regnamespace(%(schema)s) AND {SIGNATURE} = ANY(%(functions)s) AND"
        " obj_description(oid, 'pg_proc') IS NOT NULL",
        {
            "schema": f'"{schema}"',
            "views": list(VIEW_NAMES),
            "functions": list(FUNCTION_SIGNATURES),
        },
    )
    for (statement,) in cursor.fetchall():
        cursor.execute(statement)

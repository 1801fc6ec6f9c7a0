"""Comments and views: parts of a schema that follow the code, not a revision.

Written after the migrations and into every rebuilt schema, where they differ; so the wording of a
comment or a view's column needs no migration of its own.
"""

from collections.abc import Iterable
from typing import Literal

import psycopg2
import sqlalchemy as sa
from psycopg2.errors import DependentObjectsStillExist

from consumers.database.connection import Connection
from consumers.database.own_views import SIGNATURE, refuse_users_own, users_own
from consumers.errors import CuaProjectError
from consumers.tables import OPS_SCHEMA, OPS_TABLES, ROW_TABLES, SCHEMA, STATE_TABLES
from consumers.tables.comments import commented_metadata
from consumers.tables.view import Function, View
from consumers.tables.views import VIEWS, functions

WITHOUT_COMMENTS = ("alembic.autogenerate.*", "~alembic.autogenerate.comments")
"""What alembic compares: a comment of other words is no difference that a revision would mend."""
_OF_VIEWS = ("not ours:", "add_view:", "add_function:", "modify_function:")
Comments = dict[tuple[str, str | None], str]
"""(table or view, column or None) -> comment."""

OF_ALEMBIC: Comments = {
    ("alembic_version", None): "Which migration the schema is at; alembic's own table.",
    ("alembic_version", "version_num"): "Revision of the last migration that was applied.",
}


def write_repeatable(connection: sa.Connection, schema: str = SCHEMA) -> None:
    """Write the comments and views of a schema of ours that differ; of the live one also cua_ops'.

    Nothing in a schema that is missing. CuaProjectError when users' views keep one of ours from
    being replaced, or something that is not ours has its name.
    """
    if not connection.scalar(sa.text("SELECT to_regnamespace(:name)"), {"name": f'"{schema}"'}):
        return
    driver_connection: Connection = connection.connection.driver_connection
    with driver_connection.cursor() as cursor:
        refuse_users_own(cursor, schema)
    if stale := missing_views(connection, schema):
        try:
            _write_views(connection, schema)
        except psycopg2.ProgrammingError as error:
            reason = str(error).strip().splitlines()[0]
            message = (
                f"cannot make the views of the schema {schema} again ({', '.join(stale)}):"
                f" {reason}; drop or rename what has the name, then run `cua-project migrate`"
            )
            raise CuaProjectError(message) from None
    write_comments(connection, schema)


def _write_views(connection: sa.Connection, schema: str) -> None:
    # The tables that a function names may come later.
    _run(connection, "SET LOCAL check_function_bodies = off")
    for view in VIEWS:
        if not _has_columns(connection, schema, view):
            _drop(connection, schema, view)
    for function in functions(schema):
        _run(connection, _definition(schema, function))
    for view in VIEWS:
        rows = f'"{schema}".{view.name}_rows()'
        _run(
            connection,
            f'CREATE OR REPLACE VIEW "{schema}".{view.name} AS SELECT * FROM {rows}',
        )


def write_comments(connection: sa.Connection, schema: str) -> None:
    """Write the comments that differ; of the live schema also those of cua_ops."""
    if statements := _all_stale_comments(connection, schema):
        _run(connection, ";\n".join(statements))


def is_stale(connection: sa.Connection) -> bool:
    """Whether `write_repeatable` has anything to do, or to refuse, in the live schema."""
    return bool(missing_views(connection) or _all_stale_comments(connection, SCHEMA))


def _all_stale_comments(connection: sa.Connection, schema: str) -> list[str]:
    names = (schema, OPS_SCHEMA) if schema == SCHEMA else (schema,)
    return [statement for name in names for statement in _stale_comments(connection, name)]


def mending_command(differences: Iterable[str]) -> Literal["migrate", "rebuild"]:
    """Which command of `cua-project` mends these differences of a schema at this revision."""
    return (
        "migrate"
        if all(difference.startswith(_OF_VIEWS) for difference in differences)
        else "rebuild"
    )


def missing_views(connection: sa.Connection, schema: str = SCHEMA) -> list[str]:
    """Our views and functions that the schema lacks, or has in another version."""
    driver_connection: Connection = connection.connection.driver_connection
    with driver_connection.cursor() as cursor:
        theirs = users_own(cursor, schema)
    rows = connection.execute(
        sa.text(
            f"SELECT {SIGNATURE} AS signature, prosrc FROM pg_proc WHERE pronamespace ="
            " to_regnamespace(:schema)"
        ),
        {"schema": f'"{schema}"'},
    )
    found = {row.signature: row.prosrc for row in rows}
    return [
        *(f"not ours: {each}" for each in theirs),
        *(f"add_view: {view.name}" for view in VIEWS if not _has_columns(connection, schema, view)),
        *(
            f"{'modify' if each.signature in found else 'add'}_function: {each.name}"
            for each in functions(schema)
            if found.get(each.signature) != each.body
        ),
    ]


def _has_columns(connection: sa.Connection, schema: str, view: View) -> bool:
    rows = connection.execute(
        sa.text(
            "SELECT attname, atttypid::regtype::text FROM pg_attribute WHERE attrelid ="
            " to_regclass(:view) AND attnum > 0 ORDER BY attnum"
        ),
        {"view": f'"{schema}"."{view.name}"'},
    )
    types = {"timestamptz": "timestamp with time zone"}
    return [tuple(row) for row in rows] == [
        (column.name, types.get(column.type, column.type)) for column in view.columns
    ]


def _definition(schema: str, function: Function) -> str:
    head = f'FUNCTION "{schema}".{function.signature}'
    return (
        f"CREATE OR REPLACE {head} RETURNS {function.returns} LANGUAGE sql {function.attributes} AS"
        f" {_quoted(function.body)}; COMMENT ON {head} IS {_quoted(function.comment)}"
    )


def _drop(connection: sa.Connection, schema: str, view: View) -> None:
    """Drop a view of other columns, and its function, whose type would be another one."""
    name = f'"{schema}".{view.name}'
    try:
        with connection.begin_nested():
            _run(connection, f"DROP VIEW IF EXISTS {name}; DROP FUNCTION IF EXISTS {name}_rows()")
    except DependentObjectsStillExist as error:
        if not connection.scalar(sa.text("SELECT to_regclass(:name)"), {"name": name}):
            # Only the function is there, and a user's: replacing it may do.
            return
        detail = str(error.diag.message_detail or "").replace("\n", "; ")
        message = (
            f"the view {name} has other columns in this version, and others depend on it: {detail};"
            " drop them, migrate, and make them again"
        )
        raise CuaProjectError(message) from None


def _run(connection: sa.Connection, statements: str) -> None:
    # The driver's cursor: without parameters it leaves every % and : as it is.
    driver_connection: Connection = connection.connection.driver_connection
    with driver_connection.cursor() as cursor:
        cursor.execute(statements)


def _wanted(schema: str) -> Comments:
    definitions = OPS_TABLES if schema == OPS_SCHEMA else (*ROW_TABLES, *STATE_TABLES)
    tables = commented_metadata().tables
    wanted: Comments = {}
    for definition in definitions:
        table = tables[str(definition.__table__.key)]  # type: ignore[attr-defined]  # a Table, not a join
        wanted[table.name, None] = str(table.comment)
        wanted |= {(table.name, column.name): str(column.comment) for column in table.columns}
    if schema == OPS_SCHEMA:
        wanted |= OF_ALEMBIC
    else:
        for view in VIEWS:
            wanted[view.name, None] = view.comment
            wanted |= {(view.name, column.name): column.comment for column in view.columns}
    return wanted


def _stale_comments(connection: sa.Connection, schema: str) -> list[str]:
    """COMMENT ON for every table, view and column of ours whose comment is another one."""
    rows = connection.execute(
        sa.text(
            "SELECT relname, relkind::text, attname, description FROM pg_class LEFT JOIN"
            " pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped LEFT JOIN"
            " pg_description ON classoid = 'pg_class'::regclass AND objoid = pg_class.oid AND"
            " objsubid = attnum WHERE relkind IN ('r', 'v') AND relnamespace ="
            " to_regnamespace(:schema) UNION ALL SELECT relname, relkind::text, NULL,"
            " obj_description(oid, 'pg_class') FROM pg_class WHERE relkind IN ('r', 'v') AND"
            " relnamespace = to_regnamespace(:schema)"
        ),
        {"schema": f'"{schema}"'},
    )
    wanted = _wanted(schema)
    statements = []
    for relation, kind, column, description in rows:
        comment = wanted.get((relation, column))
        if comment is None or comment == description:
            continue
        name = f'"{schema}"."{relation}"'
        what = "VIEW" if kind == "v" else "TABLE"
        on = f"{what} {name}" if column is None else f'COLUMN {name}."{column}"'
        statements.append(f"COMMENT ON {on} IS {_quoted(comment)}")
    return statements


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"

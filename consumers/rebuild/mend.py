"""Mends the live tables' definition in place, so that a merge can fill whatever is missing.

Before the merge everything is made that rows need, and nothing is required of them; what requires
something (NOT NULL, keys, indexes) comes after it, in the same transaction. Tables are altered, not
replaced: what users put beside them stays, and a view that keeps a column from being altered is
named before the replay begins.
"""

from collections.abc import Iterable

import psycopg2
import sqlalchemy as sa

from consumers.database.connection import Cursor
from consumers.database.dependants import create_schema, quoted
from consumers.database.shape import Kind, Problem, find_problems, type_name
from consumers.errors import CuaProjectError
from consumers.rebuild.merge import refused_by
from consumers.rebuild.side_schema import DIALECT
from consumers.tables import SCHEMA, Base

REBUILT = frozenset({"pg_class", "pg_constraint", "pg_attrdef", "pg_statistic_ext"})
"""Catalogues of what PostgreSQL makes again by itself when a column's type changes: indexes,
constraints, defaults, statistics."""
LOCK_TIMEOUT_MS = 1_000
"""Of statements that readers of a damaged table wait for; the whole is tried again."""


def require_mendable(cursor: Cursor, problems: Iterable[Problem]) -> None:
    """CuaProjectError, naming it, when something of users' keeps a column from being altered."""
    for problem in problems:
        if problem.kind is not Kind.TYPE:
            continue
        cursor.execute(
            "SELECT DISTINCT coalesce((SELECT pg_describe_object('pg_class'::regclass, ev_class, 0)"
            " FROM pg_rewrite WHERE classid = 'pg_rewrite'::regclass AND pg_rewrite.oid = objid),"
            " pg_describe_object(classid, objid, objsubid)) FROM pg_depend WHERE refclassid ="
            " 'pg_class'::regclass AND refobjid = to_regclass(%s) AND refobjsubid = (SELECT attnum"
            " FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname = %s) AND classid <>"
            " ALL(SELECT to_regclass(name) FROM unnest(%s) AS name) ORDER BY 1",
            (*[_name(problem)] * 2, problem.column, list(REBUILT)),
        )
        if found := [row[0] for row in cursor.fetchall()]:
            message = (
                f"{problem.text}, and it cannot be altered while these use it:"
                f" {', '.join(found)}; drop them, run `cua-project rebuild`, and make them again"
            )
            raise CuaProjectError(message)


def loosen(cursor: Cursor, problems: Iterable[Problem]) -> None:
    """Make missing schemas, tables and columns, and columns of another type or too strict ones.

    A column of another type is emptied.
    """
    for problem in problems:
        for statement in _loosening(problem):
            _execute(cursor, statement, problem)


def tighten(cursor: Cursor) -> None:
    """Make what is still missing, now that the tables have the rows of the log."""
    for problem in find_problems(cursor, [SCHEMA]):
        for statement in _tightening(problem):
            _execute(cursor, statement, problem)


def _loosening(problem: Problem) -> list[str]:
    alter = f"ALTER TABLE {_name(problem)}"
    column = quoted(problem.column or "")
    match problem.kind:
        case Kind.SCHEMA | Kind.TABLE:
            tables = Base.metadata.sorted_tables
            wanted = [table for table in tables if problem.table in {None, table.name}]
            return [create_schema(SCHEMA), *_creation(wanted)]
        case Kind.COLUMN:
            return [f"{alter} ADD COLUMN {column} {_type(problem)}"]
        case Kind.TYPE:
            key = _table(problem).primary_key
            is_key = any(column.name == problem.column for column in key.columns)
            drop_key = f"{alter} DROP CONSTRAINT IF EXISTS {quoted(str(key.name))}"
            return [
                *([drop_key] if is_key else []),
                f"{alter} ALTER COLUMN {column} DROP DEFAULT, ALTER COLUMN {column} DROP NOT NULL",
                f"{alter} ALTER COLUMN {column} TYPE {_type(problem)} USING NULL",
            ]
        case Kind.REQUIRED:
            return [f"{alter} ALTER COLUMN {column} DROP NOT NULL"]
        case Kind.PRIMARY_KEY | Kind.CONSTRAINT | Kind.INDEX:
            is_key = problem.kind is Kind.PRIMARY_KEY
            return [_drop(problem), *(_without_repeated_keys(problem) if is_key else [])]
        case _:
            return []


def _drop(problem: Problem) -> str:
    """Of what has the name and is another one, or was left invalid by CREATE INDEX CONCURRENTLY."""
    if problem.kind is Kind.INDEX:
        return f"DROP INDEX IF EXISTS {quoted(SCHEMA, problem.part or '')}"
    return f"ALTER TABLE {_name(problem)} DROP CONSTRAINT IF EXISTS {quoted(problem.part or '')}"


def _without_repeated_keys(problem: Problem) -> list[str]:
    """Rows of one key are deleted, all of them; the merge inserts the one that is right."""
    keys = ", ".join(quoted(column.name) for column in _table(problem).primary_key.columns)
    name = _name(problem)
    return [
        f"DELETE FROM {name} WHERE ({keys}) IN (SELECT {keys} FROM {name} GROUP BY {keys} HAVING"
        " count(*) > 1)"
    ]


def _tightening(problem: Problem) -> list[str]:
    alter = f"ALTER TABLE {_name(problem)}"
    match problem.kind:
        case Kind.NULLABLE:
            return [f"{alter} ALTER COLUMN {quoted(problem.column or '')} SET NOT NULL"]
        case Kind.PRIMARY_KEY | Kind.CONSTRAINT:
            constraints = _table(problem).constraints
            (constraint,) = (each for each in constraints if each.name == problem.part)
            return [_sql(sa.schema.AddConstraint(constraint, isolate_from_table=False))]
        case Kind.INDEX:
            (index,) = (each for each in _table(problem).indexes if each.name == problem.part)
            return [_sql(sa.schema.CreateIndex(index))]
        case _:
            return []


def _creation(tables: Iterable[sa.Table]) -> list[str]:
    ours = [table for table in tables if table.schema == SCHEMA]
    return [
        *(_sql(sa.schema.CreateTable(table)) for table in ours),
        *(_sql(sa.schema.CreateIndex(index)) for table in ours for index in table.indexes),
    ]


def _sql(element: sa.schema.ExecutableDDLElement) -> str:
    return str(element.compile(dialect=DIALECT))


def _table(problem: Problem) -> sa.Table:
    return Base.metadata.tables[f"{SCHEMA}.{problem.table}"]


def _name(problem: Problem) -> str:
    return quoted(SCHEMA, problem.table or "")


def _type(problem: Problem) -> str:
    return type_name(_table(problem).columns[problem.column or ""])


def _execute(cursor: Cursor, statement: str, problem: Problem) -> None:
    """CuaProjectError when users' objects stand in the way; psycopg2's other errors."""
    try:
        cursor.execute(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}")
        cursor.execute(statement)
    except (psycopg2.IntegrityError, psycopg2.NotSupportedError, psycopg2.InternalError) as error:
        message = (
            f"{problem.text}, and it cannot be made again: {refused_by(error)}; nothing was"
            " changed. Drop what stands in the way, run `cua-project rebuild`, and make it again"
        )
        raise CuaProjectError(message) from None

"""What of users' keeps our tables from being mended, found and named before the log is read.

A view keeps its column's type, a foreign key its key, and a name belongs to one object of a schema.
What PostgreSQL makes again by itself when a column's type changes (indexes, checks) is tried on an
empty copy of the table.
"""

from collections.abc import Iterable, Sequence

import psycopg2
import sqlalchemy as sa
from psycopg2.errors import InsufficientPrivilege

from consumers.database.connection import Cursor
from consumers.database.dependants import quoted
from consumers.database.shape import Kind, Problem, type_name
from consumers.errors import CuaProjectError
from consumers.rebuild.merge import is_users, refused_by
from consumers.tables import Base

REBUILT = frozenset({"pg_class", "pg_constraint", "pg_attrdef", "pg_statistic_ext"})
"""Catalogues of what PostgreSQL makes again by itself when a column's type changes: indexes,
constraints, defaults, statistics."""
COPY = "cua_altered_copy"
"""An empty temporary table, gone at once."""
_WHAT = (
    "coalesce((SELECT pg_describe_object('pg_class'::regclass, ev_class, 0) FROM pg_rewrite WHERE"
    " classid = 'pg_rewrite'::regclass AND pg_rewrite.oid = objid), pg_describe_object(classid,"
    " objid, objsubid))"
)
"""SQL: an object of pg_depend in PostgreSQL's words; for a view's rule, the view."""
_OF_COLUMN = (
    "refclassid = 'pg_class'::regclass AND refobjid = to_regclass(%(table)s) AND refobjsubid ="
    " (SELECT attnum FROM pg_attribute WHERE attrelid = to_regclass(%(table)s) AND attname ="
    " %(column)s)"
)


def require_mendable(cursor: Cursor, problems: Sequence[Problem]) -> None:
    """CuaProjectError, naming it, when something of users' keeps a part from being mended."""
    for problem in {(problem.schema, problem.table): problem for problem in problems}.values():
        if problem.table is not None:
            _refuse_taken_names(cursor, problem)
    for problem in problems:
        if problem.table is None:
            continue
        if problem.kind is Kind.TYPE:
            _refuse_users_of(cursor, problem)
            _try_alteration(cursor, problem)
        elif dropped := [one.name for one in problem.standing if not one.is_ours]:
            _refuse(problem, "replaced", _users_of_keys(cursor, problem, dropped))


def users_of_column(cursor: Cursor, problem: Problem) -> list[str]:
    """Users' indexes, constraints and so on that PostgreSQL would have to make again."""
    table = Base.metadata.tables[f"{problem.schema}.{problem.table}"]
    cursor.execute(
        f"SELECT DISTINCT {_WHAT} FROM pg_depend WHERE {_OF_COLUMN} AND classid = ANY(SELECT"
        " to_regclass(name) FROM unnest(%(rebuilt)s) AS name) AND NOT EXISTS (SELECT FROM pg_class"
        " WHERE classid = 'pg_class'::regclass AND oid = objid AND relname = ANY(%(ours)s)) AND NOT"
        " EXISTS (SELECT FROM pg_constraint WHERE classid = 'pg_constraint'::regclass AND oid ="
        " objid AND conname = ANY(%(ours)s)) AND NOT EXISTS (SELECT FROM pg_attrdef WHERE classid ="
        " 'pg_attrdef'::regclass AND oid = objid AND adnum = refobjsubid AND adrelid = refobjid)"
        " ORDER BY 1",
        {
            "table": _name(problem),
            "column": problem.column,
            "rebuilt": list(REBUILT),
            "ours": _names_of(table),
        },
    )
    return [row[0] for row in cursor.fetchall()]


def _refuse_taken_names(cursor: Cursor, problem: Problem) -> None:
    """Another object has the name of the table, or of one of its keys and indexes."""
    table = Base.metadata.tables[f"{problem.schema}.{problem.table}"]
    cursor.execute(
        "WITH own AS (SELECT oid FROM pg_class WHERE relnamespace = to_regnamespace(%(schema)s) AND"
        " relname = %(table)s AND relkind = 'r'), taken AS (SELECT CASE relkind WHEN 'p' THEN"
        " 'partitioned ' ELSE '' END || pg_describe_object('pg_class'::regclass, pg_class.oid, 0)"
        " || coalesce(' of ' || indrelid::regclass, '') AS what FROM pg_class LEFT JOIN pg_index ON"
        " indexrelid = pg_class.oid WHERE relnamespace = to_regnamespace(%(schema)s) AND relname ="
        " ANY(%(names)s) AND pg_class.oid NOT IN (SELECT oid FROM own) AND (indrelid IS NULL OR"
        " indrelid NOT IN (SELECT oid FROM own)) UNION ALL SELECT pg_describe_object("
        "'pg_type'::regclass, oid, 0) FROM pg_type WHERE typnamespace = to_regnamespace(%(schema)s)"
        " AND typname = %(table)s AND typrelid = 0 AND typelem = 0) SELECT what FROM taken ORDER"
        " BY 1",
        {
            "schema": problem.schema,
            "table": table.name,
            "names": [table.name, *_names_of(table, but=sa.CheckConstraint)],
        },
    )
    if found := [row[0] for row in cursor.fetchall()]:
        message = (
            f"{problem.text}, and other objects have names that the table needs:"
            f" {', '.join(found)}. Rename, move or drop them (if one is the table itself, rename it"
            f" to {problem.schema}.{table.name}), then run `cua-project rebuild`"
        )
        raise CuaProjectError(message)


def _refuse_users_of(cursor: Cursor, problem: Problem) -> None:
    """What PostgreSQL does not make again; what refers to a key that is emptied."""
    cursor.execute(
        f"SELECT DISTINCT {_WHAT} FROM pg_depend WHERE {_OF_COLUMN} AND (classid <> ALL(SELECT"
        " to_regclass(name) FROM unnest(%(rebuilt)s) AS name) OR EXISTS (SELECT FROM pg_constraint"
        " WHERE classid = 'pg_constraint'::regclass AND oid = objid AND contype = 'f')) ORDER BY 1",
        {"table": _name(problem), "column": problem.column, "rebuilt": list(REBUILT)},
    )
    found = [row[0] for row in cursor.fetchall()]
    key = Base.metadata.tables[f"{problem.schema}.{problem.table}"].primary_key
    if any(column.name == problem.column for column in key.columns):
        found += _users_of_keys(cursor, problem, [str(key.name)])
    _refuse(problem, "altered", found)


def _users_of_keys(cursor: Cursor, problem: Problem, names: Sequence[str]) -> list[str]:
    """Foreign keys and views that need a key or an index of the table."""
    cursor.execute(
        f"SELECT DISTINCT {_WHAT} FROM pg_depend WHERE deptype = 'n' AND (refclassid ="
        " 'pg_constraint'::regclass AND refobjid IN (SELECT oid FROM pg_constraint WHERE conrelid ="
        " to_regclass(%(table)s) AND conname = ANY(%(names)s)) OR refclassid ="
        " 'pg_class'::regclass AND refobjid IN (SELECT oid FROM pg_class JOIN pg_index ON"
        " indexrelid = oid WHERE indrelid = to_regclass(%(table)s) AND relname = ANY(%(names)s)))"
        " ORDER BY 1",
        {"table": _name(problem), "names": list(names)},
    )
    return [row[0] for row in cursor.fetchall()]


def _try_alteration(cursor: Cursor, problem: Problem) -> None:
    """An index or a check of a user's may not fit the column's own type."""
    if not (found := users_of_column(cursor, problem)):
        return
    table = Base.metadata.tables[f"{problem.schema}.{problem.table}"]
    column = table.columns[problem.column or ""]
    alter = f"ALTER TABLE pg_temp.{COPY} ALTER COLUMN {quoted(column.name)}"
    cursor.execute("SAVEPOINT altered_copy")
    try:
        cursor.execute(f"CREATE TEMPORARY TABLE {COPY} (LIKE {_name(problem)} INCLUDING ALL)")
        cursor.execute(f"{alter} DROP DEFAULT; {alter} TYPE {type_name(column)} USING NULL")
    except InsufficientPrivilege:
        # Without the right to temporary tables, the live one is tried.
        pass
    except psycopg2.Error as error:
        if not is_users(error):
            raise
        _refuse(problem, "altered", found, refused_by(error))
    finally:
        cursor.execute("ROLLBACK TO SAVEPOINT altered_copy; RELEASE SAVEPOINT altered_copy")


def _refuse(problem: Problem, verb: str, found: Iterable[str], reason: str | None = None) -> None:
    """CuaProjectError when there are any."""
    if named := ", ".join(dict.fromkeys(found)):
        message = (
            f"{problem.text}, and it cannot be {verb} while these use it: {named}"
            f"{f' ({reason})' if reason else ''}; drop them, run `cua-project rebuild`, and create"
            " them again"
        )
        raise CuaProjectError(message)


def _names_of(table: sa.Table, but: type[sa.Constraint] | tuple[()] = ()) -> list[str]:
    """Of its keys, constraints and indexes."""
    constraints = [str(one.name) for one in table.constraints if not isinstance(one, but)]
    return constraints + [str(index.name) for index in table.indexes]


def _name(problem: Problem) -> str:
    return quoted(problem.schema, problem.table or "")

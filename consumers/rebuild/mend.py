"""Mends the live tables' definition in place, so that a merge can fill whatever is missing.

What only loosens comes first, in a short transaction of its own; what rows need and what is emptied
in the transaction of the merge, before it; what requires something (NOT NULL, keys, indexes) at its
end. So readers wait for moments, except where a column of another type is emptied. Tables are
altered, not replaced: what users put beside them stays.
"""

from collections.abc import Iterable

import psycopg2
import sqlalchemy as sa

from consumers.database.connection import Cursor
from consumers.database.dependants import create_schema, quoted
from consumers.database.shape import Kind, Problem, Standing, find_problems, type_name
from consumers.errors import CuaProjectError
from consumers.rebuild.hashing import NAMES
from consumers.rebuild.merge import is_users, refused_by
from consumers.rebuild.obstacles import users_of_column
from consumers.rebuild.paused import LOCK_TIMEOUT_S
from consumers.rebuild.side_schema import DIALECT
from consumers.tables import OUTDATED, SCHEMA, Base

TIGHTENED = frozenset({Kind.NULLABLE, Kind.PRIMARY_KEY, Kind.CONSTRAINT})
"""Kinds that need a lock against readers at the end."""
LOCK_TIMEOUT_MS = 1_000
"""Of statements that readers of a damaged table wait for; the whole is tried again."""


def only_loosens(problem: Problem) -> bool:
    """Whether mending it is harmless even where the rebuild ends before its merge.

    A lost column of rows is, because the tables are marked as outdated meanwhile.
    """
    match problem.kind:
        case Kind.REQUIRED:
            return True
        case Kind.COLUMN:
            return problem.table in NAMES
        case _:
            return bool(problem.standing)


def loosen_first(cursor: Cursor) -> None:
    """Mend what only loosens."""
    problems = [problem for problem in find_problems(cursor, [SCHEMA]) if only_loosens(problem)]
    loosen(cursor, problems)
    if any(problem.kind is Kind.COLUMN for problem in problems):
        _mark_outdated(cursor)


def _mark_outdated(cursor: Cursor) -> None:
    """Until the merge takes it back, every command asks for a rebuild.

    Where the mark cannot be made, what is wrong with its table says the same.
    """
    left = {problem.table for problem in find_problems(cursor, [SCHEMA]) if problem.is_fatal}
    if not left & {None, "projection"}:
        cursor.execute(f"UPDATE {SCHEMA}.projection SET version = %s", (OUTDATED,))


def require_unlocked(cursor: Cursor, problems: Iterable[Problem]) -> None:
    """LockNotAvailable while others read a table that `tighten` will have to itself.

    Asked before the merge, so that a long reader costs one second of it and not the whole of it
    again and again. The locks are released at once.
    """
    tables = {_name(problem) for problem in problems if problem.kind in TIGHTENED}
    if tables:
        cursor.execute(
            f"SAVEPOINT unlocked; SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}; LOCK TABLE"
            f" {', '.join(sorted(tables))} IN ACCESS EXCLUSIVE MODE; ROLLBACK TO SAVEPOINT"
            " unlocked; RELEASE SAVEPOINT unlocked"
        )


def loosen(cursor: Cursor, problems: Iterable[Problem]) -> None:
    """Make missing schemas, tables and columns, and columns of another type or too strict ones.

    Keys and indexes that stand where others belong are renamed or dropped. A column of another type
    is emptied; of rows with one key none is left.
    """
    for problem in problems:
        for statement in _loosening(cursor, problem):
            _execute(cursor, statement, problem)


def tighten(cursor: Cursor) -> None:
    """Make what is still missing, now that the tables have the rows of the log.

    Indexes first: readers go on meanwhile. Then what readers wait for, until the commit.
    """
    problems = find_problems(cursor, [SCHEMA])
    for tightening in (_indexes, _requirements):
        for problem in problems:
            for statement in tightening(problem):
                _execute(cursor, statement, problem)


def _loosening(cursor: Cursor, problem: Problem) -> list[str]:
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
            return [
                *_drop_key_of(cursor, problem),
                f"{alter} ALTER COLUMN {column} DROP DEFAULT, ALTER COLUMN {column} DROP NOT NULL",
                f"{alter} ALTER COLUMN {column} TYPE {_type(problem)} USING NULL",
            ]
        case Kind.REQUIRED:
            return [f"{alter} ALTER COLUMN {column} DROP NOT NULL"]
        case Kind.PRIMARY_KEY if not problem.standing:
            return [_without_repeated_keys(problem)]
        case _:
            return [_out_of_the_way(problem, standing) for standing in problem.standing]


def _out_of_the_way(problem: Problem, standing: Standing) -> str:
    alter, name = f"ALTER TABLE {_name(problem)}", quoted(standing.name)
    if standing.is_ours:
        return f"{alter} RENAME CONSTRAINT {name} TO {quoted(problem.part or '')}"
    if standing.is_constraint:
        return f"{alter} DROP CONSTRAINT {name}"
    return f"DROP INDEX {quoted(SCHEMA, standing.name)}"


def _drop_key_of(cursor: Cursor, problem: Problem) -> list[str]:
    """Of a column that is emptied: the table's primary key, whatever its name, if it is in it."""
    cursor.execute(
        "SELECT conname FROM pg_constraint JOIN pg_attribute ON attrelid = conrelid AND attnum ="
        " ANY(conkey) WHERE conrelid = to_regclass(%s) AND contype = 'p' AND attname = %s",
        (_name(problem), problem.column),
    )
    return [
        f"ALTER TABLE {_name(problem)} DROP CONSTRAINT {quoted(row[0])}"
        for row in cursor.fetchall()
    ]


def _without_repeated_keys(problem: Problem) -> str:
    """Rows of one key are deleted, all of them; the merge inserts the one that is right."""
    keys = ", ".join(quoted(column.name) for column in _table(problem).primary_key.columns)
    name = _name(problem)
    return (
        f"DELETE FROM {name} WHERE ({keys}) IN (SELECT {keys} FROM {name} GROUP BY {keys} HAVING"
        " count(*) > 1)"
    )


def _indexes(problem: Problem) -> list[str]:
    """Also those of the keys, under the keys' names."""
    match problem.kind:
        case Kind.INDEX:
            (index,) = (each for each in _table(problem).indexes if each.name == problem.part)
            return [_sql(sa.schema.CreateIndex(index))]
        case Kind.PRIMARY_KEY | Kind.CONSTRAINT if columns := _key_columns(problem):
            name = quoted(problem.part or "")
            return [f"CREATE UNIQUE INDEX {name} ON {_name(problem)} ({columns})"]
        case _:
            return []


def _requirements(problem: Problem) -> list[str]:
    alter = f"ALTER TABLE {_name(problem)}"
    name = quoted(problem.part or "")
    match problem.kind:
        case Kind.NULLABLE:
            return [f"{alter} ALTER COLUMN {quoted(problem.column or '')} SET NOT NULL"]
        case Kind.PRIMARY_KEY:
            return [f"{alter} ADD CONSTRAINT {name} PRIMARY KEY USING INDEX {name}"]
        case Kind.CONSTRAINT if _key_columns(problem):
            return [f"{alter} ADD CONSTRAINT {name} UNIQUE USING INDEX {name}"]
        case Kind.CONSTRAINT:
            added = sa.schema.AddConstraint(_constraint(problem), isolate_from_table=False)
            return [_sql(added)]
        case _:
            return []


def _constraint(problem: Problem) -> sa.Constraint:
    constraints = _table(problem).constraints
    (constraint,) = (each for each in constraints if each.name == problem.part)
    return constraint


def _key_columns(problem: Problem) -> str:
    """Of a primary or unique key; none: it is a check."""
    constraint = _constraint(problem)
    if isinstance(constraint, sa.PrimaryKeyConstraint | sa.UniqueConstraint):
        return ", ".join(quoted(column.name) for column in constraint.columns)
    return ""


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
    used_by = users_of_column(cursor, problem) if problem.kind is Kind.TYPE else []
    try:
        cursor.execute(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}")
        cursor.execute(statement)
        cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT_S}s'")
    except psycopg2.Error as error:
        if not is_users(error):
            raise
        named = f" ({', '.join(used_by)})" if used_by else ""
        message = (
            f"{problem.text}, and it cannot be repaired: {refused_by(error)}; no row was changed."
            f" Drop the object that blocks this{named}, run `cua-project rebuild`, then create that"
            " object again"
        )
        raise CuaProjectError(message) from None

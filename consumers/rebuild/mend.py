"""Makes again what is missing of the live tables, so that a merge can fill it.

All in the transaction of the merge: schemas, tables and columns before it, keys, indexes and NOT
NULL at its end. Tables are altered, not replaced: what users put beside them stays. What was
altered is refused before the log is read (`database.shape.Problem.is_altered`).
"""

from collections.abc import Iterable

import psycopg2
import sqlalchemy as sa

from consumers.database.connection import Cursor
from consumers.database.dependants import create_schema, quoted
from consumers.database.shape import Kind, Problem, find_problems, type_name
from consumers.errors import CuaProjectError
from consumers.rebuild.merge import is_users, refused_by
from consumers.rebuild.paused import LOCK_TIMEOUT_S
from consumers.rebuild.side_schema import DIALECT
from consumers.tables import SCHEMA, Base

LOCK_TIMEOUT_MS = 1_000
"""Of statements that readers of a damaged table wait for; the whole is tried again."""


def make_missing(cursor: Cursor, problems: Iterable[Problem]) -> None:
    """Schemas, tables and columns that are missing; columns may be NULL until `require`.

    Tables that `require` will need exclusively are locked here: if a long reader holds one, the
    attempt fails after a second, and not at the end of the merge.
    """
    for problem in problems:
        for statement in _creation(problem):
            _execute(cursor, statement, problem)


def require(cursor: Cursor) -> None:
    """Keys, indexes and NOT NULL that are still missing, now that the rows are those of the log."""
    for problem in find_problems(cursor, [SCHEMA]):
        for statement in _requirement(problem):
            _execute(cursor, statement, problem)


def _creation(problem: Problem) -> list[str]:
    match problem.kind:
        case Kind.SCHEMA | Kind.TABLE:
            tables = [
                table
                for table in Base.metadata.sorted_tables
                if table.schema == SCHEMA and problem.table in {None, table.name}
            ]
            indexes = [index for table in tables for index in table.indexes]
            return [
                create_schema(SCHEMA),
                *(_sql(sa.schema.CreateTable(table)) for table in tables),
                *(_sql(sa.schema.CreateIndex(index)) for index in indexes),
            ]
        case Kind.COLUMN:
            column = _table(problem).columns[problem.column or ""]
            added = f"{quoted(column.name)} {type_name(column)}"
            return [f"ALTER TABLE {_name(problem)} ADD COLUMN {added}"]
        case Kind.INDEX:
            return []
        case _:
            return [f"LOCK TABLE {_name(problem)} IN ACCESS EXCLUSIVE MODE"]


def _requirement(problem: Problem) -> list[str]:
    match problem.kind:
        case Kind.NULLABLE:
            column = quoted(problem.column or "")
            return [f"ALTER TABLE {_name(problem)} ALTER COLUMN {column} SET NOT NULL"]
        case Kind.INDEX:
            (index,) = (each for each in _table(problem).indexes if each.name == problem.part)
            return [_sql(sa.schema.CreateIndex(index))]
        case Kind.PRIMARY_KEY | Kind.CONSTRAINT:
            constraints = _table(problem).constraints
            (constraint,) = (each for each in constraints if each.name == problem.part)
            return [_sql(sa.schema.AddConstraint(constraint, isolate_from_table=False))]
        case _:
            return []


def _sql(element: sa.schema.ExecutableDDLElement) -> str:
    return str(element.compile(dialect=DIALECT))


def _table(problem: Problem) -> sa.Table:
    return Base.metadata.tables[f"{SCHEMA}.{problem.table}"]


def _name(problem: Problem) -> str:
    return quoted(SCHEMA, problem.table or "")


def _execute(cursor: Cursor, statement: str, problem: Problem) -> None:
    """CuaProjectError when users' objects or rows stand in the way; psycopg2's other errors."""
    try:
        cursor.execute(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}")
        cursor.execute(statement)
        cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT_S}s'")
    except psycopg2.Error as error:
        if not is_users(error):
            raise
        message = (
            f"{problem.text}, and it cannot be repaired: {refused_by(error)}; no row was changed."
            " Drop or rename what is in the way, or drop the whole table, then run `cua-project"
            " rebuild` again"
        )
        raise CuaProjectError(message) from None

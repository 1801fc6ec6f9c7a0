"""What a database lacks of the tables' definition: tables, columns, types, keys, indexes.

Reads PostgreSQL's catalogue only, in some milliseconds. Of indexes and keys names, columns and
uniqueness are compared, of checks the names; `migrate --check` compares more.
"""

from collections.abc import Iterable, Sequence
from enum import Enum, auto
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from consumers.database.connection import Cursor
from consumers.errors import MismatchError
from consumers.tables import OPS_SCHEMA, SCHEMA, Base

LISTED = 5
"""Problems that a message names."""


class Kind(Enum):
    """What a problem is about."""

    SCHEMA = auto()
    TABLE = auto()
    COLUMN = auto()
    """It is missing."""
    TYPE = auto()
    NULLABLE = auto()
    """A column may be NULL and must not."""
    REQUIRED = auto()
    """A column must not be NULL and may: one of ours, or a user's without a default."""
    PRIMARY_KEY = auto()
    CONSTRAINT = auto()
    INDEX = auto()
    REVISION = auto()
    """What `alembic_version` says."""


class Problem(NamedTuple):
    """One thing that is missing or other than defined."""

    kind: Kind
    schema: str
    table: str | None
    """None: the whole schema."""
    column: str | None
    text: str
    is_fatal: bool
    """Rows cannot be written or read; otherwise only slower, or less is checked."""
    part: str | None = None
    """Name of a key, constraint or index."""


def find_problems(cursor: Cursor, schemas: Sequence[str] = (SCHEMA, OPS_SCHEMA)) -> list[Problem]:
    """Everything that differs from the definition, tables in the order of their definition.

    A schema beside the live one has the tables of the live one.
    """
    cursor.execute("SELECT nspname FROM pg_namespace WHERE nspname = ANY(%s)", (list(schemas),))
    present = {row[0] for row in cursor.fetchall()}
    columns, parts = _read_columns(cursor, schemas), _read_parts(cursor, schemas)
    found: list[Problem] = []
    for schema in schemas:
        if schema not in present:
            text = f"the schema {schema} is missing"
            found.append(Problem(Kind.SCHEMA, schema, None, None, text, is_fatal=True))
            continue
        for table in Base.metadata.sorted_tables:
            if table.schema == (schema if schema == OPS_SCHEMA else SCHEMA):
                found += _problems(schema, table, columns, parts)
    return found


def require_whole(problems: Iterable[Problem]) -> None:
    """MismatchError, naming them, when something without which nothing can be read is missing."""
    if fatal := [problem.text for problem in problems if problem.is_fatal]:
        raise MismatchError(describe(fatal))


def describe(texts: Sequence[str]) -> str:
    """One sentence: what is missing, and the command that makes it again."""
    more = f" and {len(texts) - LISTED} more" if len(texts) > LISTED else ""
    return (
        f"{'; '.join(texts[:LISTED])}{more}; `cua-project rebuild` makes the tables again from the"
        " log"
    )


class _Column(NamedTuple):
    kind: str
    is_required: bool
    has_default: bool


def _problems(
    schema: str,
    table: sa.Table,
    columns: dict[tuple[str, str], dict[str, _Column]],
    parts: dict[tuple[str, str, str], tuple[bool, list[str] | None]],
) -> list[Problem]:
    at = f"{schema}.{table.name}"

    def problem(kind: Kind, text: str, column: str | None = None, *, fatal: bool = True) -> Problem:
        return Problem(kind, schema, table.name, column, text, fatal)

    live = columns.get((schema, table.name))
    if live is None:
        return [problem(Kind.TABLE, f"the table {at} is missing")]
    found: list[Problem] = []
    for column in table.columns:
        name, kind = column.name, type_name(column)
        if name not in live:
            found.append(problem(Kind.COLUMN, f"the column {at}.{name} is missing", name))
        elif live[name].kind != kind:
            text = f"the column {at}.{name} has the type {live[name].kind} instead of {kind}"
            found.append(problem(Kind.TYPE, text, name))
        elif live[name].is_required == bool(column.nullable):
            text = f"the column {at}.{name} {'must not' if column.nullable else 'may'} be NULL"
            # An older writer may rely on NULL; a missing NOT NULL only checks less.
            which = Kind.REQUIRED if column.nullable else Kind.NULLABLE
            found.append(problem(which, text, name, fatal=bool(column.nullable)))
    ours = {column.name for column in table.columns}
    found += [
        problem(Kind.REQUIRED, f"the column {at}.{name}, which is not ours, needs a default", name)
        for name, column in sorted(live.items())
        if name not in ours and column.is_required and not column.has_default
    ]
    for part in _parts(table):
        what = f"the {part.kind.name.lower().replace('_', ' ')} {part.name} of {at}"
        found_part = parts.get((schema, table.name, part.name))
        if found_part is None:
            text = f"{what} is missing"
        elif part.columns is not None and found_part != (part.is_unique, part.columns):
            text = f"{what} is another one"
        else:
            continue
        fatal = part.kind is Kind.PRIMARY_KEY
        found.append(problem(part.kind, text, fatal=fatal)._replace(part=part.name))
    return found


class _Part(NamedTuple):
    """A key, constraint or index of a table's definition."""

    kind: Kind
    name: str
    is_unique: bool
    columns: list[str] | None
    """None: of a check, which has a condition instead."""


def _parts(table: sa.Table) -> list[_Part]:
    found = []
    for constraint in sorted(table.constraints, key=lambda constraint: str(constraint.name)):
        if isinstance(constraint, sa.PrimaryKeyConstraint | sa.UniqueConstraint):
            is_key = isinstance(constraint, sa.PrimaryKeyConstraint)
            kind = Kind.PRIMARY_KEY if is_key else Kind.CONSTRAINT
            columns = [column.name for column in constraint.columns]
            found.append(_Part(kind, str(constraint.name), is_unique=True, columns=columns))
        elif isinstance(constraint, sa.CheckConstraint):
            name = str(constraint.name)
            found.append(_Part(Kind.CONSTRAINT, name, is_unique=False, columns=None))
    for index in sorted(table.indexes, key=lambda index: str(index.name)):
        columns = [column.name for column in index.columns]
        found.append(_Part(Kind.INDEX, str(index.name), bool(index.unique), columns))
    return found


def type_name(column: sa.Column[object]) -> str:
    """A column's type as PostgreSQL's format_type writes it."""
    text = str(column.type.compile(dialect=postgresql.dialect())).lower()  # type: ignore[no-untyped-call]
    return {"varchar": "character varying"}.get(text, text)


def _read_columns(
    cursor: Cursor, schemas: Sequence[str]
) -> dict[tuple[str, str], dict[str, _Column]]:
    cursor.execute(
        "SELECT nspname, relname, attname, format_type(atttypid, atttypmod), attnotnull, atthasdef"
        " OR attidentity <> '' FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace"
        " LEFT JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped"
        " WHERE nspname = ANY(%s) AND relkind = 'r'",
        (list(schemas),),
    )
    found: dict[tuple[str, str], dict[str, _Column]] = {}
    for schema, table, column, *rest in cursor.fetchall():
        columns = found.setdefault((schema, table), {})
        if column is not None:
            columns[column] = _Column(*rest)
    return found


def _read_parts(
    cursor: Cursor, schemas: Sequence[str]
) -> dict[tuple[str, str, str], tuple[bool, list[str] | None]]:
    """(schema, table, name) -> uniqueness and columns of every constraint and usable index."""
    columns = (
        "(SELECT array_agg(attname::text ORDER BY place) FROM unnest({}::int2[]) WITH ORDINALITY AS"
        " key (number, place) JOIN pg_attribute ON attrelid = {} AND attnum = number)"
    )
    cursor.execute(
        "SELECT nspname, relname, conname, contype IN ('p', 'u'),"
        f" {columns.format('conkey', 'conrelid')} FROM pg_constraint JOIN pg_class ON pg_class.oid"
        " = conrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname ="
        " ANY(%(schemas)s) UNION ALL SELECT nspname, pg_class.relname, made.relname, indisunique,"
        f" {columns.format('indkey', 'indrelid')} FROM pg_index JOIN pg_class ON pg_class.oid ="
        " indrelid JOIN pg_class AS made ON made.oid = indexrelid JOIN pg_namespace ON"
        " pg_namespace.oid = pg_class.relnamespace WHERE nspname = ANY(%(schemas)s) AND indisvalid",
        {"schemas": list(schemas)},
    )
    return {(row[0], row[1], row[2]): (row[3], row[4]) for row in cursor.fetchall()}

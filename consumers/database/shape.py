"""What a database lacks of the tables' definition: tables, columns, types, keys, indexes.

Reads PostgreSQL's catalogue only, in some milliseconds. Indexes and constraints are compared by
name; `migrate --check` compares more.
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
    columns, names = _read_columns(cursor, schemas), _read_names(cursor, schemas)
    found: list[Problem] = []
    for schema in schemas:
        if schema not in present:
            text = f"the schema {schema} is missing"
            found.append(Problem(Kind.SCHEMA, schema, None, None, text, is_fatal=True))
            continue
        for table in Base.metadata.sorted_tables:
            if table.schema == (schema if schema == OPS_SCHEMA else SCHEMA):
                found += _problems(schema, table, columns, names)
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
    names: set[tuple[str, str, str]],
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
    for kind_, part in _parts(table):
        if (schema, table.name, part) not in names:
            what = kind_.name.lower().replace("_", " ")
            text = f"the {what} {part} of {at} is missing"
            fatal = kind_ is Kind.PRIMARY_KEY
            found.append(problem(kind_, text, fatal=fatal)._replace(part=part))
    return found


def _parts(table: sa.Table) -> list[tuple[Kind, str]]:
    """Keys, constraints and indexes; only without its primary key nothing works."""
    constraints = sorted(table.constraints, key=lambda constraint: str(constraint.name))
    indexes = sorted(table.indexes, key=lambda index: str(index.name))
    return [
        *(
            (
                Kind.PRIMARY_KEY
                if isinstance(constraint, sa.PrimaryKeyConstraint)
                else Kind.CONSTRAINT,
                str(constraint.name),
            )
            for constraint in constraints
            if not isinstance(constraint, sa.ForeignKeyConstraint)
        ),
        *((Kind.INDEX, str(index.name)) for index in indexes),
    ]


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


def _read_names(cursor: Cursor, schemas: Sequence[str]) -> set[tuple[str, str, str]]:
    """(schema, table, name) of every constraint and usable index."""
    cursor.execute(
        "SELECT nspname, relname, conname FROM pg_constraint JOIN pg_class ON pg_class.oid ="
        " conrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname ="
        " ANY(%(schemas)s) UNION ALL SELECT nspname, pg_class.relname, made.relname FROM pg_index"
        " JOIN pg_class ON pg_class.oid = indrelid JOIN pg_class AS made ON made.oid = indexrelid"
        " JOIN pg_namespace ON pg_namespace.oid = pg_class.relnamespace WHERE nspname ="
        " ANY(%(schemas)s) AND indisvalid",
        {"schemas": list(schemas)},
    )
    return {(row[0], row[1], row[2]) for row in cursor.fetchall()}

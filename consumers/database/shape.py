"""What a database lacks of the tables' definition: tables, columns, types, keys, indexes.

Reads PostgreSQL's catalogue only, in some milliseconds. Keys are compared by their columns,
whatever their names, indexes by name, columns and uniqueness, checks by name.
"""

from collections.abc import Iterable, Sequence
from enum import Enum, auto
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from consumers.database.connection import Cursor, connected
from consumers.database.revision import make_again
from consumers.errors import MismatchError
from consumers.tables import OPS_SCHEMA, SCHEMA, Base

LISTED = 5
"""Problems that a message names."""
REBUILD = "`cua-project rebuild` repairs the tables from the log"
BY_HAND = "change it back, or drop it with what depends on it"
"""What a user does first about a column that was altered: a rebuild refuses it."""


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

    @property
    def is_altered(self) -> bool:
        """Something else is in its place, which only the user can change."""
        return self.kind in {Kind.TYPE, Kind.REQUIRED}


def find_problems(cursor: Cursor, schemas: Sequence[str] = (SCHEMA, OPS_SCHEMA)) -> list[Problem]:
    """Everything that differs from the definition, tables in the order of their definition."""
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
            if table.schema == schema:
                found += _problems(schema, table, columns, parts)
    return found


def missing(url: str) -> list[Problem]:
    """What a database at this code's revision lacks. UnreachableError."""
    with connected(url, "check") as connection, connection, connection.cursor() as cursor:
        return find_problems(cursor)


def require_whole(problems: Iterable[Problem]) -> None:
    """MismatchError, naming them, when something without which nothing can be read is missing."""
    if fatal := [problem for problem in problems if problem.is_fatal]:
        raise MismatchError(describe(fatal))


def require_operations(cursor: Cursor) -> None:
    """MismatchError, naming it, when anything of `cua_ops` is missing, which no rebuild mends."""
    if problems := find_problems(cursor, [OPS_SCHEMA]):
        raise MismatchError(describe(problems))


def describe(problems: Iterable[Problem]) -> str:
    """One sentence: what is missing, and the commands that make it again."""
    problems = list(problems)
    is_of_operations = any(problem.schema == OPS_SCHEMA for problem in problems)
    helps = make_again() if is_of_operations else REBUILD
    return describe_texts([problem.text for problem in problems], helps)


def describe_texts(texts: Sequence[str], helps: str = REBUILD) -> str:
    """As `describe`, of the problems' texts."""
    more = f" and {len(texts) - LISTED} more" if len(texts) > LISTED else ""
    return f"{'; '.join(texts[:LISTED])}{more}; {helps}"


class _Column(NamedTuple):
    kind: str
    is_required: bool
    has_default: bool


def _problems(
    schema: str,
    table: sa.Table,
    columns: dict[tuple[str, str], dict[str, _Column]],
    parts: dict[tuple[str, str], set["_Part"]],
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
            has = f"has the type {live[name].kind} instead of {kind}"
            text = f"the column {at}.{name} {has} ({BY_HAND})"
            found.append(problem(Kind.TYPE, text, name))
        elif live[name].is_required == bool(column.nullable):
            text = (
                f"the column {at}.{name} is NOT NULL but must allow NULL ({BY_HAND})"
                if column.nullable
                else f"the column {at}.{name} allows NULL but must be NOT NULL"
            )
            # An older writer may rely on NULL; a missing NOT NULL only checks less.
            which = Kind.REQUIRED if column.nullable else Kind.NULLABLE
            found.append(problem(which, text, name, fatal=bool(column.nullable)))
    ours = {column.name for column in table.columns}
    found += [
        problem(
            Kind.REQUIRED,
            f"the column {at}.{name}, which a user added, is NOT NULL without a default, so that no"
            " row can be inserted (give it a default, or drop it)",
            name,
        )
        for name, column in sorted(live.items())
        if name not in ours and column.is_required and not column.has_default
    ]
    live_parts = parts.get((schema, table.name), set())
    for which, name, part in _parts(table):
        if part not in live_parts:
            text = f"the {which.name.lower().replace('_', ' ')} {name} of {at} is missing"
            fatal = which is Kind.PRIMARY_KEY
            found.append(problem(which, text, fatal=fatal)._replace(part=name))
    return found


class _Part(NamedTuple):
    """What of a key, constraint or index is compared."""

    letter: str
    """pg_constraint's `contype`: `p`rimary key, `u`nique, `c`heck ...; `i`: an index."""
    name: str | None
    """None: of a key, which does its work under any name."""
    columns: tuple[str, ...] | None
    """None: of a check, which has a condition instead."""
    is_unique: bool


def _parts(table: sa.Table) -> list[tuple[Kind, str, _Part]]:
    """The keys, checks and indexes of a table's definition, with their names."""
    found = []
    for constraint in sorted(table.constraints, key=lambda constraint: str(constraint.name)):
        name = str(constraint.name)
        if isinstance(constraint, sa.PrimaryKeyConstraint | sa.UniqueConstraint):
            is_key = isinstance(constraint, sa.PrimaryKeyConstraint)
            kind, letter = (Kind.PRIMARY_KEY, "p") if is_key else (Kind.CONSTRAINT, "u")
            columns = tuple(column.name for column in constraint.columns)
            found.append((kind, name, _Part(letter, None, columns, is_unique=True)))
        elif isinstance(constraint, sa.CheckConstraint):
            found.append((Kind.CONSTRAINT, name, _Part("c", name, None, is_unique=False)))
    for index in sorted(table.indexes, key=lambda index: str(index.name)):
        name, columns = str(index.name), tuple(column.name for column in index.columns)
        found.append((Kind.INDEX, name, _Part("i", name, columns, bool(index.unique))))
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


def _read_parts(cursor: Cursor, schemas: Sequence[str]) -> dict[tuple[str, str], set[_Part]]:
    """(schema, table) -> its constraints and valid indexes."""
    columns = (
        "(SELECT array_agg(attname::text ORDER BY place) FROM unnest({}::int2[]) WITH ORDINALITY AS"
        " key (number, place) JOIN pg_attribute ON attrelid = {} AND attnum = number)"
    )
    cursor.execute(
        "SELECT nspname, relname, contype::text, CASE WHEN contype NOT IN ('p', 'u') THEN conname"
        f" END, CASE WHEN contype <> 'c' THEN {columns.format('conkey', 'conrelid')} END, contype"
        " IN ('p', 'u') FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid JOIN"
        " pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = ANY(%(schemas)s) UNION"
        " ALL SELECT nspname, pg_class.relname, 'i', made.relname,"
        f" {columns.format('indkey', 'indrelid')}, indisunique FROM pg_index JOIN pg_class ON"
        " pg_class.oid = indrelid JOIN pg_class AS made ON made.oid = indexrelid JOIN pg_namespace"
        " ON pg_namespace.oid = pg_class.relnamespace WHERE nspname = ANY(%(schemas)s) AND"
        " indisvalid",
        {"schemas": list(schemas)},
    )
    found: dict[tuple[str, str], set[_Part]] = {}
    for schema, table, letter, name, names, is_unique in cursor.fetchall():
        part = _Part(letter, name, None if names is None else tuple(names), is_unique)
        found.setdefault((schema, table), set()).add(part)
    return found

"""What a database lacks of the tables' definition: tables, columns, types, keys, indexes.

Reads PostgreSQL's catalogue only, in some milliseconds. Of keys and indexes kind, name, columns and
uniqueness are compared, of checks the names; `migrate --check` compares more.
"""

from collections.abc import Iterable, Sequence
from enum import Enum, auto
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from consumers.database.connection import Cursor, connected
from consumers.database.revision import MAKE_AGAIN
from consumers.errors import MismatchError
from consumers.tables import OPS_SCHEMA, SCHEMA, Base

LISTED = 5
"""Problems that a message names."""
REBUILD = "`cua-project rebuild` repairs the tables from the log"


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


class Standing(NamedTuple):
    """A key, constraint or index that is where one of ours must be."""

    name: str
    is_constraint: bool
    is_ours: bool
    """Only its name is another."""


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
    standing: tuple[Standing, ...] = ()
    """What must be renamed or dropped before the part can be made."""


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
    is_mended = all(problem.schema != OPS_SCHEMA for problem in problems)
    texts = [problem.text for problem in problems]
    return describe_texts(texts, REBUILD if is_mended else MAKE_AGAIN)


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
    parts: dict[tuple[str, str], list["_LivePart"]],
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
            text = (
                f"the column {at}.{name} is NOT NULL but must allow NULL"
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
            " row can be inserted",
            name,
        )
        for name, column in sorted(live.items())
        if name not in ours and column.is_required and not column.has_default
    ]
    for part in _parts(table):
        live_parts = parts.get((schema, table.name), [])
        if (wrong := _difference(part, live_parts)) is None:
            continue
        standing = _standing(part, live_parts)
        is_there = any(one.is_ours for one in standing)
        what = f"the {part.kind.name.lower().replace('_', ' ')} {part.name} of {at}"
        fatal = part.kind is Kind.PRIMARY_KEY and not is_there
        found.append(
            problem(part.kind, f"{what} {wrong}", fatal=fatal)._replace(
                part=part.name, standing=standing
            )
        )
    return found


class _Part(NamedTuple):
    """A key, constraint or index of a table's definition."""

    kind: Kind
    name: str
    letter: str
    """As in `_LivePart`."""
    columns: list[str] | None
    """None: of a check, which has a condition instead."""
    is_unique: bool


class _LivePart(NamedTuple):
    """A constraint or an index of a live table; the index of a key is there as well."""

    name: str
    letter: str
    """pg_constraint's `contype`: `p`rimary key, `u`nique, `c`heck ...; `i`: an index."""
    is_unique: bool
    columns: list[str] | None
    is_valid: bool

    def is_the(self, part: _Part) -> bool:
        """Whether it is the part, whatever its name."""
        return (self.letter, self.is_valid) == (part.letter, True) and (
            part.columns is None or (self.is_unique, self.columns) == (part.is_unique, part.columns)
        )

    def has_name_of(self, part: _Part) -> bool:
        """Whether the part cannot be made beside it; an index and a check may share a name."""
        if self.name != part.name:
            return False
        return "i" not in {self.letter, part.letter} or {self.letter, part.letter} <= set("ipux")


def _difference(part: _Part, live: Sequence[_LivePart]) -> str | None:
    """What is wrong with a part, after its name; None: nothing."""
    if any(one.name == part.name and one.is_the(part) for one in live):
        return None
    standing = _standing(part, live)
    if any(one.is_ours for one in standing):
        return f"should have that name and is named {standing[0].name}"
    if any(one.has_name_of(part) and one.is_valid for one in live):
        return "differs from ours in kind, columns or uniqueness"
    if others := [one.name for one in standing if one.name != part.name]:
        return f"is missing; the table has {others[0]} on other columns in its place"
    return "is missing"


def _standing(part: _Part, live: Sequence[_LivePart]) -> tuple[Standing, ...]:
    """What is the part under another name; otherwise what it cannot be made beside."""
    in_the_way = [one for one in live if one.has_name_of(part)]
    keys = [one for one in live if one.letter == part.letter and one.name != part.name]
    if part.letter in "pu" and not in_the_way and (same := [k for k in keys if k.is_the(part)]):
        return (Standing(same[0].name, is_constraint=True, is_ours=True),)
    if part.letter == "p":
        # A table has one.
        in_the_way += keys
    # The index of a constraint has its name and goes with it.
    constraints = {one.name for one in in_the_way if one.letter != "i"}
    return tuple(
        Standing(name, name in constraints, is_ours=False)
        for name in dict.fromkeys(one.name for one in in_the_way)
    )


def _parts(table: sa.Table) -> list[_Part]:
    found = []
    for constraint in sorted(table.constraints, key=lambda constraint: str(constraint.name)):
        if isinstance(constraint, sa.PrimaryKeyConstraint | sa.UniqueConstraint):
            is_key = isinstance(constraint, sa.PrimaryKeyConstraint)
            kind, letter = (Kind.PRIMARY_KEY, "p") if is_key else (Kind.CONSTRAINT, "u")
            columns = [column.name for column in constraint.columns]
            found.append(_Part(kind, str(constraint.name), letter, columns, is_unique=True))
        elif isinstance(constraint, sa.CheckConstraint):
            name = str(constraint.name)
            found.append(_Part(Kind.CONSTRAINT, name, "c", None, is_unique=False))
    for index in sorted(table.indexes, key=lambda index: str(index.name)):
        columns = [column.name for column in index.columns]
        is_unique = bool(index.unique)
        found.append(_Part(Kind.INDEX, str(index.name), "i", columns, is_unique=is_unique))
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


def _read_parts(cursor: Cursor, schemas: Sequence[str]) -> dict[tuple[str, str], list[_LivePart]]:
    """(schema, table) -> its constraints and indexes."""
    columns = (
        "(SELECT array_agg(attname::text ORDER BY place) FROM unnest({}::int2[]) WITH ORDINALITY AS"
        " key (number, place) JOIN pg_attribute ON attrelid = {} AND attnum = number)"
    )
    cursor.execute(
        "SELECT nspname, relname, conname, contype::text, contype IN ('p', 'u'),"
        f" {columns.format('conkey', 'conrelid')}, true FROM pg_constraint JOIN pg_class ON"
        " pg_class.oid = conrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE"
        " nspname = ANY(%(schemas)s) UNION ALL SELECT nspname, pg_class.relname, made.relname, 'i',"
        f" indisunique, {columns.format('indkey', 'indrelid')}, indisvalid FROM pg_index JOIN"
        " pg_class ON pg_class.oid = indrelid JOIN pg_class AS made ON made.oid = indexrelid JOIN"
        " pg_namespace ON pg_namespace.oid = pg_class.relnamespace WHERE nspname ="
        " ANY(%(schemas)s) ORDER BY 1, 2, 3, 4",
        {"schemas": list(schemas)},
    )
    found: dict[tuple[str, str], list[_LivePart]] = {}
    for schema, table, *part in cursor.fetchall():
        found.setdefault((schema, table), []).append(_LivePart(*part))
    return found

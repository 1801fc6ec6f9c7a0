"""A database's schema as CREATE TABLE statements, read from its file.

The statements are rebuilt from SQLite's catalogue rather than copied from the author's, so that all
databases look alike.
"""

import re
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from producer.sql_execution.sqlite import unfinished

PLAIN_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
KEYWORD_NAMES: Final = (
    "add all alter and as asc begin between by case check column commit constraint create current"
    " cross date default delete desc distinct drop each else end escape except exists for foreign"
    " from full group having if in index inner insert intersect into is join key left like limit"
    " match no not null of offset on or order outer over primary references right row rows select"
    " set table then to transaction union unique update using values view when where with"
)
KEYWORDS: Final = frozenset(KEYWORD_NAMES.split())
MAX_DESCRIPTION_CHARS: Final = 120
Descriptions = Mapping[tuple[str, str], str]
"""Maps (table, column), both in lower case, to the column's meaning."""


class UnreadableDatabaseError(Exception):
    """The file is not a readable database. The message does not name the file."""


class Column(NamedTuple):
    """A column of a table."""

    name: str
    type: str
    """The declared type; empty if there is none."""
    key_position: int
    """Position in the primary key, from 1; 0 if the column is not in it."""


class ForeignKey(NamedTuple):
    """Columns that refer to another table."""

    columns: tuple[str, ...]
    table: str
    to_columns: tuple[str, ...]
    """The referenced columns; empty if they are the other table's primary key."""


class Table(NamedTuple):
    """A table of a database."""

    name: str
    columns: tuple[Column, ...]
    foreign_keys: tuple[ForeignKey, ...]


def read_tables(path: Path) -> tuple[Table, ...]:
    """The tables in order of creation, without SQLite's internal ones.

    Raises UnreadableDatabaseError.
    """
    try:
        if not path.is_file():
            message = "there is no such file"
            raise UnreadableDatabaseError(message)
        if problem := unfinished(path):
            raise UnreadableDatabaseError(problem)
        # `immutable`: SQLite then writes no companion files, so the disk may be read-only.
        uri = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.text_factory = lambda text: text.decode("utf-8", "replace")
            names = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite!_%'"
                " ESCAPE '!' ORDER BY rowid"
            ).fetchall()
            return tuple(_read_table(connection, name) for (name,) in names)
    except (sqlite3.Error, OSError, ValueError) as error:
        message = str(error)
        raise UnreadableDatabaseError(message) from error


def create_statements(
    tables: Sequence[Table], descriptions: Descriptions | None = None
) -> list[str]:
    """One CREATE TABLE statement per table.

    A statement is on one line if none of its columns has a description; otherwise each column is on
    its own line, followed by its description.
    """
    return [_create_statement(table, descriptions or {}) for table in tables]


def _read_table(connection: sqlite3.Connection, name: str) -> Table:
    info = connection.execute(
        "SELECT name, type, pk FROM pragma_table_info(?) ORDER BY cid", (name,)
    ).fetchall()
    keys: dict[int, tuple[list[str], str, list[str]]] = {}
    for number, table, column, to_column in connection.execute(
        'SELECT id, "table", "from", "to" FROM pragma_foreign_key_list(?) ORDER BY id DESC, seq',
        (name,),
    ):
        columns, _, to_columns = keys.setdefault(number, ([], table, []))
        columns.append(column)
        if to_column is not None:
            to_columns.append(to_column)
    return Table(
        name,
        tuple(Column(*column) for column in info),
        tuple(ForeignKey(tuple(own), table, tuple(to)) for own, table, to in keys.values()),
    )


def _create_statement(table: Table, descriptions: Descriptions) -> str:
    key = sorted(
        (column.key_position, column.name) for column in table.columns if column.key_position
    )
    parts, notes = [], []
    for column in table.columns:
        is_key = len(key) == 1 and column.key_position
        parts.append(
            f"{quoted_name(column.name)} {column.type}".strip() + (" PRIMARY KEY" if is_key else "")
        )
        described = descriptions.get((table.name.lower(), column.name.lower()), "")
        notes.append(" ".join(described.split())[:MAX_DESCRIPTION_CHARS].strip())
    if len(key) > 1:
        parts.append(f"PRIMARY KEY {_listed([name for _, name in key])}")
    for foreign in table.foreign_keys:
        to = f" {_listed(foreign.to_columns)}" if foreign.to_columns else ""
        parts.append(
            f"FOREIGN KEY {_listed(foreign.columns)} REFERENCES {quoted_name(foreign.table)}{to}"
        )
    head = f"CREATE TABLE {quoted_name(table.name)} ("
    if not any(notes):
        return f"{head}{', '.join(parts)});"
    notes += [""] * (len(parts) - len(notes))
    lines = [
        f"  {part}{',' if at < len(parts) - 1 else ''}" + (f" -- {note}" if note else "")
        for at, (part, note) in enumerate(zip(parts, notes, strict=True))
    ]
    return "\n".join([head, *lines, ");"])


def _listed(names: Sequence[str]) -> str:
    return f"({', '.join(map(quoted_name, names))})"


def quoted_name(name: str) -> str:
    """The name as an SQL identifier, quoted if it is not a plain word."""
    if PLAIN_NAME.fullmatch(name) and name.lower() not in KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'

"""Rows as COPY's text format, and as the JSON that an UPDATE reads.

PostgreSQL cannot store NUL in text: it becomes U+FFFD.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pydantic_core import to_json
from sqlalchemy import Boolean, DateTime, Double, Integer, LargeBinary, String, Table, Uuid
from sqlalchemy.dialects.postgresql import JSONB

from consumers.fold.rows import Row
from consumers.tables import Base

Encoder = Callable[[object], str]

NUL = "\x00"


def _text(value: object) -> str:
    text = str(value)
    # Five searches for one character are ten times faster than one regular expression.
    if not ("\\" in text or "\n" in text or "\t" in text or "\r" in text or NUL in text):
        return text
    # One pass per character is several times faster than str.translate.
    text = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    return text.replace(NUL, "\ufffd")


def _time(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _boolean(value: object) -> str:
    return "t" if value else "f"


def _bytes(value: object) -> str:
    assert isinstance(value, bytes)  # noqa: S101  # column type
    return "\\\\x" + value.hex()


def _document(value: object) -> str:
    return json_text(value).replace("\\", "\\\\")


def json_text(value: object) -> str:
    """A document as jsonb takes it: NaN and infinities as text, no NUL."""
    text = to_json(value, inf_nan_mode="strings").decode()
    if "\\u0000" in text:
        text = to_json(without_nul(value), inf_nan_mode="strings").decode()
    return text


def without_nul(value: object) -> object:
    """U+FFFD for every NUL, in keys too."""
    match value:
        case str():
            return value.replace(NUL, "\ufffd")
        case dict():
            return {without_nul(key): without_nul(item) for key, item in value.items()}
        case list() | tuple():
            return [without_nul(item) for item in value]
        case None | bool() | int() | float() | UUID() | datetime():
            return value
        case _:
            return without_nul(value.model_dump(mode="json"))  # type: ignore[attr-defined]  # anything else is a nested model of a payload


_ENCODERS: tuple[tuple[type, Encoder, str], ...] = (
    (Uuid, str, "uuid"),
    (String, _text, "text"),
    (Boolean, _boolean, "boolean"),
    (Integer, str, "bigint"),
    (Double, repr, "double precision"),
    (DateTime, _time, "timestamptz"),
    (JSONB, _document, "jsonb"),
    (LargeBinary, _bytes, "bytea"),
)


class Column(NamedTuple):
    """How a column is written."""

    name: str
    encode: Encoder
    type: str
    """In an UPDATE's record definition; bigint for every integer, so that the column's range check
    reports a number out of range."""


class Columns(NamedTuple):
    """A table's columns, in the table's order."""

    columns: tuple[Column, ...]
    names: str
    """Quoted, comma-separated."""
    by_name: dict[str, Column]


def _columns(table: Table) -> Columns:
    columns = []
    for column in table.columns:
        encoder, type_ = next(
            (encode, name) for kind, encode, name in _ENCODERS if isinstance(column.type, kind)
        )
        columns.append(Column(column.name, encoder, type_))
    return Columns(
        tuple(columns),
        ", ".join(f'"{column.name}"' for column in columns),
        {column.name: column for column in columns},
    )


TABLES: dict[str, Columns] = {
    table.name: _columns(table) for table in Base.metadata.tables.values()
}
"""Every table, by its name without the schema."""


def copy_text(table: str, rows: Iterable[Row]) -> str:
    """Rows as COPY's text format, in the order of `TABLES[table].columns`.

    Columns that a row lacks are NULL.
    """
    pairs = [(column.name, column.encode) for column in TABLES[table].columns]
    lines = []
    for row in rows:
        get = row.get
        lines.append(
            "\t".join(
                ["\\N" if (value := get(name)) is None else encode(value) for name, encode in pairs]
            )
        )
    lines.append("")
    return "\n".join(lines)

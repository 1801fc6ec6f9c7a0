"""An entry's table: its rows as the database holds them, by the types of its columns."""

import re
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

from pydantic import JsonValue

from schemas.entry import TableInfo

INT, TEXT = "INT", "TEXT"
TYPES: Final = (INT, TEXT)
INT_RANGE: Final = (-(2**31), 2**31 - 1)
"""Of MySQL's INT."""
FAR: Final = 2**40
NUMBER: Final = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?\s*")

Value = int | str | None


def column_type(declared: str) -> str:
    """INT or TEXT. ValueError."""
    name = declared.strip().upper()
    if name not in TYPES:
        message = f"{declared!r} is no type of DB Bench; use INT or TEXT"
        raise ValueError(message)
    return name


def table_rows(table: TableInfo) -> tuple[tuple[Value, ...], ...]:
    """The rows as they are inserted. ValueError, led by the row's and the column's place."""
    types = [column_type(column.type) for column in table.columns]
    return tuple(_row(row, types, number, table) for number, row in enumerate(table.rows))


def _row(
    row: Sequence[JsonValue], types: Sequence[str], number: int, table: TableInfo
) -> tuple[Value, ...]:
    if len(row) != len(types):
        message = f"row_list[{number}]: it has {len(row)} values; there are {len(types)} columns"
        raise ValueError(message)
    values = []
    for column, kind, value in zip(table.columns, types, row, strict=True):
        try:
            values.append(as_int(value) if kind == INT else as_text(value))
        except ValueError as error:
            message = f"row_list[{number}], column {column.name}: {error}"
            raise ValueError(message) from error
    return tuple(values)


def as_int(value: JsonValue) -> int | None:
    """A value of an INT column, rounded as MySQL does: halves away from zero. ValueError."""
    if value is None:
        return None
    text = str(int(value) if isinstance(value, bool) else value)
    if not isinstance(value, int | float | str) or not NUMBER.fullmatch(text):
        message = f"{value!r} is no number"
        raise ValueError(message)
    exact = Decimal(text.strip())
    # Far outside, `quantize` would need more digits than it has.
    number = int(exact.quantize(Decimal(1), ROUND_HALF_UP)) if abs(exact) < FAR else FAR
    if not INT_RANGE[0] <= number <= INT_RANGE[1]:
        message = f"{value!r} is out of range of an INT"
        raise ValueError(message)
    return number


def as_text(value: JsonValue) -> str | None:
    """A value of a TEXT column. ValueError."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        message = f"{value!r} is no text"
        raise ValueError(message)  # noqa: TRY004  # of a data set's file, not of our code
    return str(value)

"""The types of a table's columns: MySQL's, as data sets declare them.

INT TINYINT SMALLINT MEDIUMINT BIGINT BOOLEAN, UNSIGNED or not, with a display width or not
DECIMAL(10,2) NUMERIC     exact, with its digits after the point
FLOAT DOUBLE REAL         FLOAT of single precision; FLOAT(8,2) and DOUBLE(8,2) rounded
YEAR                      of four digits
TEXT VARCHAR(50) CHAR(2), and the other sizes of TEXT
DATE DATETIME TIMESTAMP TIME, as texts in the form that MySQL stores them in
"""

import math
import re
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import lru_cache
from typing import Final, Literal

from pydantic import JsonValue

from producer.sql_execution.mysql_values import (
    TimeKind,
    as_text,
    decimal_text,
    shown_single,
    single,
    time_text,
)

Value = int | float | str | None
Kind = Literal["INT", "DECIMAL", "DOUBLE", "TEXT"]

DECLARED: Final = re.compile(
    r"([A-Z]+)(?: PRECISION)? ?(?:\( ?(\d{1,5}) ?(?:, ?(\d{1,2}) ?)?\))?( UNSIGNED)?"
)
BYTES: Final = {
    "TINYINT": 1,
    "BOOL": 1,
    "BOOLEAN": 1,
    "SMALLINT": 2,
    "MEDIUMINT": 3,
    "INT": 4,
    "INTEGER": 4,
    "BIGINT": 8,
}
DECIMALS: Final = ("DECIMAL", "NUMERIC", "DEC", "FIXED")
DOUBLES: Final = ("FLOAT", "DOUBLE", "REAL")
SINGLE_BITS: Final = 24
"""A FLOAT(p) of more bits is a DOUBLE."""
YEARS: Final = (1901, 2155)
TEXTS: Final = {"TEXT": None, "MEDIUMTEXT": None, "LONGTEXT": None, "TINYTEXT": 255}
SIZED_TEXTS: Final = ("VARCHAR", "CHAR")
TIMES: Final[dict[str, TimeKind]] = {
    "DATE": "DATE",
    "DATETIME": "DATETIME",
    "TIMESTAMP": "DATETIME",
    "TIME": "TIME",
}
FORMS: Final[dict[TimeKind, str]] = {
    "DATE": "2024-01-31",
    "DATETIME": "2024-01-31 10:00:00",
    "TIME": "10:00:00",
}
"""An example of each."""
MAX_DIGITS: Final = 15
"""Of a DECIMAL: the embedded database computes with doubles, which are exact up to there."""
NUMBER: Final = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?\s*")
DIGITS: Final = 400
"""Enough to round any double exactly."""


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A column's type."""

    kind: Kind
    declared: str
    """In upper case, for a server."""
    low: int = 0
    high: int = 0
    """INT: least and greatest value."""
    scale: int | None = None
    """DECIMAL and DOUBLE: digits after the point; None: of a DOUBLE, any."""
    digits: int = 0
    """Of a number with a scale, those after the point included."""
    is_single: bool = False
    """DOUBLE: of a FLOAT, which holds single precision."""
    is_unsigned: bool = False
    max_characters: int | None = None
    """TEXT: None is without a limit."""
    time: TimeKind | None = None
    """TEXT of a time."""
    is_padded: bool = False
    """TEXT of CHAR, which loses spaces at the end."""

    @property
    def name(self) -> str:
        """As `mysql_scales.Types` has it."""
        if self.kind == "DECIMAL":
            return f"DECIMAL({self.digits},{self.scale})"
        if self.kind == "DOUBLE":
            name = "FLOAT" if self.is_single else "DOUBLE"
            return name if self.scale is None else f"{name}({self.digits},{self.scale})"
        return self.time or self.kind

    def value(self, given: JsonValue) -> Value:
        """The value as MySQL stores it. ValueError."""
        if given is None:
            return None
        if self.kind == "TEXT":
            return self._text(given)
        text = str(int(given) if isinstance(given, bool) else given)
        if not isinstance(given, int | float | str) or not NUMBER.fullmatch(text):
            message = f"{given!r} is no number"
            raise ValueError(message)
        exact = Decimal(text.strip())
        rounded = exact if self.kind == "DOUBLE" and self.scale is None else self._rounded(exact)
        if self._is_within(rounded):
            if self.kind == "INT":
                return int(rounded)
            number = single(float(rounded)) if self.is_single else float(rounded)
            if math.isfinite(number):
                return number
        message = f"{given!r} is out of range of {_with_article(self.declared)}"
        raise ValueError(message)

    def _rounded(self, exact: Decimal) -> Decimal:
        """Halves away from zero, as MySQL rounds."""
        with localcontext() as context:
            context.prec = DIGITS + 10
            if exact.adjusted() > DIGITS:
                return exact
            unit = Decimal(1).scaleb(-(self.scale or 0))
            return exact.quantize(unit, ROUND_HALF_UP) + 0  # no -0.00

    def _is_within(self, rounded: Decimal) -> bool:
        if self.kind == "INT":
            return self.low <= rounded <= self.high
        if self.is_unsigned and rounded < 0:
            return False
        return self.scale is None or abs(rounded) < 10 ** (self.digits - self.scale)

    def _text(self, given: JsonValue) -> str:
        if not isinstance(given, str | int | float) or isinstance(given, bool):
            message = f"{given!r} is no text"
            raise ValueError(message)  # noqa: TRY004  # of a data set's file, not of our code
        text = str(given)
        if self.time is not None:
            found = time_text(self.time, text)
            if found is None:
                message = (
                    f"{text[:60]!r} is not a valid {self.declared}; write it as {FORMS[self.time]}"
                )
                raise ValueError(message)
            return found
        if self.max_characters is not None:
            bare = text.rstrip(" ")
            if len(bare) > self.max_characters:
                message = f"{text[:60]!r} has {len(bare)} characters, too many for {self.declared}"
                raise ValueError(message)
            return bare if self.is_padded else text[: self.max_characters]
        return text

    def text_of(self, value: Value) -> str | None:
        """A stored value as MySQL writes it, None for NULL."""
        if value is None:
            return None
        if isinstance(value, float) and self.is_single and self.scale is None:
            value = shown_single(value)
        if isinstance(value, int | float) and self.kind != "INT" and self.scale is not None:
            return decimal_text(value, self.scale)
        return as_text(value)


def _with_article(declared: str) -> str:
    return f"an {declared}" if declared[0] in "AEIOU" else f"a {declared}"


@lru_cache(maxsize=1024)
def column_type(declared: str) -> ColumnType:
    """The type that a data set declares. ValueError."""
    written = " ".join(declared.upper().split())
    found = DECLARED.fullmatch(written)
    if found is not None:
        name, length, scale, unsigned = found.groups()
        type_ = _type(name, written, length, scale, is_unsigned=unsigned is not None)
        if type_ is not None:
            return type_
    message = (
        f"{declared!r} is no type of DB Bench; use one of MySQL's for whole numbers (INT, BIGINT),"
        f" numbers (DECIMAL(10,2), at most {MAX_DIGITS} digits, DOUBLE), texts (TEXT, VARCHAR(50))"
        " or times (DATE, DATETIME)"
    )
    raise ValueError(message)


def _type(  # noqa: PLR0911  # one per kind
    name: str, written: str, length: str | None, scale: str | None, *, is_unsigned: bool
) -> ColumnType | None:
    if name in BYTES and scale is None:
        bits = 8 * BYTES[name]
        low, high = (0, 2**bits - 1) if is_unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        # The embedded database's integers have 64 bits.
        return ColumnType("INT", written, low=low, high=min(high, 2**63 - 1))
    if name in DECIMALS:
        return _exact(
            "DECIMAL", written, int(length or 10), int(scale or 0), is_unsigned=is_unsigned
        )
    if name in DOUBLES:
        return _inexact(name, written, length, scale, is_unsigned=is_unsigned)
    if is_unsigned or scale is not None:
        return None
    if name == "YEAR" and length in {None, "4"}:
        return ColumnType("INT", written, low=YEARS[0], high=YEARS[1])
    if name in TEXTS and length is None:
        return ColumnType("TEXT", written, max_characters=TEXTS[name])
    if name in SIZED_TEXTS and (length is not None or name == "CHAR"):
        size = int(length or 1)
        return ColumnType("TEXT", written, max_characters=size, is_padded=name == "CHAR")
    if name in TIMES and length is None:
        return ColumnType("TEXT", written, time=TIMES[name])
    return None


def _exact(
    kind: Kind, written: str, digits: int, scale: int, *, is_unsigned: bool
) -> ColumnType | None:
    """With digits after the point; None for more than a double is exact for."""
    if not 0 < digits <= MAX_DIGITS or scale > digits:
        return None
    return ColumnType(kind, written, digits=digits, scale=scale, is_unsigned=is_unsigned)


def _inexact(
    name: str, written: str, length: str | None, scale: str | None, *, is_unsigned: bool
) -> ColumnType | None:
    bits = 0
    type_: ColumnType | None
    if scale is not None:
        type_ = _exact("DOUBLE", written, int(length or 0), int(scale), is_unsigned=is_unsigned)
    elif length is None or name == "FLOAT":
        bits = int(length or 0)
        type_ = ColumnType("DOUBLE", written, is_unsigned=is_unsigned)
    else:
        type_ = None
    is_single = name == "FLOAT" and bits <= SINGLE_BITS
    return None if type_ is None else replace(type_, is_single=is_single)

"""The types of a table's columns: MySQL's, as data sets declare them.

INT TINYINT SMALLINT MEDIUMINT BIGINT BOOLEAN, UNSIGNED or not, with a display width or not
DECIMAL(10,2) NUMERIC     exact, with its digits after the point
FLOAT DOUBLE REAL
TEXT VARCHAR(50) CHAR(2), and the other sizes of TEXT
DATE DATETIME TIMESTAMP TIME, as texts in MySQL's own form
"""

import math
import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import lru_cache
from typing import Final, Literal

from pydantic import JsonValue

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
TEXTS: Final = {"TEXT": None, "MEDIUMTEXT": None, "LONGTEXT": None, "TINYTEXT": 255}
SIZED_TEXTS: Final = ("VARCHAR", "CHAR")
TIMES: Final = {
    "DATE": "0000-00-00",
    "DATETIME": "0000-00-00 00:00:00",
    "TIMESTAMP": "0000-00-00 00:00:00",
    "TIME": "00:00:00",
}
"""Name -> its form, a 0 for each digit."""
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
    scale: int = 0
    """DECIMAL: digits after the point."""
    digits: int = 0
    """DECIMAL: of a number, those after the point included."""
    max_characters: int | None = None
    """TEXT: None is without a limit."""
    form: str | None = None
    """TEXT of a time: a 0 for each digit."""

    @property
    def name(self) -> str:
        """As the dialect is told: INT, TEXT, DOUBLE or DECIMAL(10,2)."""
        return f"DECIMAL({self.digits},{self.scale})" if self.kind == "DECIMAL" else self.kind

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
        if self.kind == "DOUBLE" and math.isfinite(number := float(exact)):
            return number
        rounded = _rounded(exact, self.scale)
        if self.kind == "INT" and self.low <= rounded <= self.high:
            return int(rounded)
        if self.kind == "DECIMAL" and abs(rounded) < 10 ** (self.digits - self.scale):
            return float(rounded)
        message = f"{given!r} is out of range of {_with_article(self.declared)}"
        raise ValueError(message)

    def _text(self, given: JsonValue) -> str:
        if not isinstance(given, str | int | float) or isinstance(given, bool):
            message = f"{given!r} is no text"
            raise ValueError(message)  # noqa: TRY004  # of a data set's file, not of our code
        text = str(given)
        if self.max_characters is not None and len(text) > self.max_characters:
            message = f"{text[:60]!r} has {len(text)} characters, too many for {self.declared}"
            raise ValueError(message)
        if self.form is not None and re.sub(r"[0-9]", "0", text) != self.form:
            message = f"{text[:60]!r} is no {self.declared}; write it as {self.form}"
            raise ValueError(message)
        return text

    def text_of(self, value: Value) -> str | None:
        """A stored value as MySQL writes it, None for NULL."""
        if value is None:
            return None
        if self.kind == "DECIMAL":
            return f"{_rounded(Decimal(str(value)), self.scale):f}"
        if isinstance(value, float) and value.is_integer():
            return str(int(value))
        return str(value)


def _rounded(exact: Decimal, scale: int) -> Decimal:
    """Halves away from zero, as MySQL rounds."""
    with localcontext() as context:
        context.prec = DIGITS + 10
        if exact.adjusted() > DIGITS:
            return exact
        return exact.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP) + 0  # no -0.00


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
        digits, places = int(length or 10), int(scale or 0)
        is_known = 0 < digits <= MAX_DIGITS and places <= digits
        return ColumnType("DECIMAL", written, digits=digits, scale=places) if is_known else None
    if name in DOUBLES:
        return ColumnType("DOUBLE", written)
    if is_unsigned or scale is not None:
        return None
    if name in TEXTS and length is None:
        return ColumnType("TEXT", written, max_characters=TEXTS[name])
    if name in SIZED_TEXTS and (length is not None or name == "CHAR"):
        return ColumnType("TEXT", written, max_characters=int(length or 1))
    if name in TIMES and length is None:
        return ColumnType("TEXT", written, form=TIMES[name])
    return None

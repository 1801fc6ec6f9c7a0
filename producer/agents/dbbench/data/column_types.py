"""The column types of tables, which are MySQL's, as data sets declare them.

INT TINYINT SMALLINT MEDIUMINT BIGINT, UNSIGNED or not, with a display width or not
DECIMAL(10,2)             exact, with its digits after the point
FLOAT DOUBLE              FLOAT of single precision; FLOAT(8,2) and DOUBLE(8,2) rounded
YEAR                      of four digits
TEXT VARCHAR(50) CHAR(2), and the other sizes of TEXT
DATE DATETIME TIMESTAMP TIME, as texts in the form in which MySQL stores them

MySQL's synonyms and column attributes are accepted too (`column_declaration`).
"""

import math
import re
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import lru_cache
from typing import Final, Literal

from pydantic import JsonValue

from producer.agents.dbbench.data.column_declaration import (
    NO_RULES,
    Declaration,
    Rules,
    read_declaration,
    refuse_attribute,
    refuse_type,
)
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

BYTES: Final = {"TINYINT": 1, "SMALLINT": 2, "MEDIUMINT": 3, "INT": 4, "BIGINT": 8}
DOUBLES: Final = ("FLOAT", "DOUBLE")
SINGLE_BITS: Final = 24
"""FLOAT(p) with more bits than this is a DOUBLE."""
YEARS: Final = (1901, 2155)
TEXTS: Final = {"TEXT": None, "MEDIUMTEXT": None, "LONGTEXT": None, "TINYTEXT": 255}
TEXT_BYTES: Final = {"TINYTEXT": 2**8, "TEXT": 2**16, "MEDIUMTEXT": 2**24, "LONGTEXT": 2**32}
CHARACTER_BYTES: Final = 4
"""Maximum bytes of a character in utf8mb4. TEXT(n) is the smallest text type that holds n
characters."""
SIZED_TEXTS: Final = ("VARCHAR", "CHAR")
MAX_KEY: Final = 768
"""Maximum characters of a text that is PRIMARY KEY or UNIQUE: MySQL's limit."""
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
"""An example of each kind of time."""
MAX_DIGITS: Final = 15
"""Maximum digits of a DECIMAL. The embedded database computes with doubles, which are exact up to
this many digits."""
NUMBER: Final = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?\s*")
DIGITS: Final = 400
"""Decimal precision that suffices to round any double exactly."""


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A column's type."""

    kind: Kind
    declared: str
    """The type in upper case, without synonyms and attributes."""
    low: int = 0
    high: int = 0
    """Minimum and maximum value of an INT."""
    scale: int | None = None
    """Digits after the point of a DECIMAL or a DOUBLE; None for a DOUBLE without that limit."""
    digits: int = 0
    """Total digits, including those after the point, of a number with a scale."""
    is_single: bool = False
    """Whether a DOUBLE was declared as FLOAT and holds single precision."""
    is_unsigned: bool = False
    max_characters: int | None = None
    """Maximum length of a TEXT; None for no limit."""
    time: TimeKind | None = None
    """Kind of time that a TEXT holds, if any."""
    is_padded: bool = False
    """Whether a TEXT was declared as CHAR, which drops trailing spaces."""
    rules: Rules = NO_RULES
    """Constraints from the column's attributes."""

    @property
    def definition(self) -> str:
        """The column definition for a server."""
        rules = self.rules
        default = None if rules.default is None else as_text(rules.default)
        parts = (
            (self.declared, True),
            ("NOT NULL", not rules.is_nullable),
            (f"DEFAULT {_literal(default or '')}", default is not None),
            ("AUTO_INCREMENT", rules.is_numbered),
            ("UNIQUE", rules.is_unique),
            ("PRIMARY KEY", rules.is_primary),
        )
        return " ".join(part for part, is_there in parts if is_there)

    @property
    def name(self) -> str:
        """Name of the type in `mysql_scales.Types`."""
        if self.kind == "DECIMAL":
            return f"DECIMAL({self.digits},{self.scale})"
        if self.kind == "DOUBLE":
            name = "FLOAT" if self.is_single else "DOUBLE"
            return name if self.scale is None else f"{name}({self.digits},{self.scale})"
        return self.time or self.kind

    def value(self, given: JsonValue) -> Value:
        """Convert a value to what MySQL stores. Raises ValueError if it does not fit."""
        if given is None:
            if not self.rules.is_nullable:
                message = "it is NULL, but the column is NOT NULL"
                raise ValueError(message)
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
                if self.rules.is_numbered and not rounded:
                    message = (
                        "MySQL replaces 0 in an AUTO_INCREMENT column by the next number; write"
                        " that number"
                    )
                    raise ValueError(message)
                return int(rounded)
            number = single(float(rounded)) if self.is_single else float(rounded)
            if math.isfinite(number):
                return number
        message = f"{given!r} is out of range of {_with_article(self.declared)}"
        raise ValueError(message)

    def _rounded(self, exact: Decimal) -> Decimal:
        """Round half away from zero, as MySQL does."""
        with localcontext() as context:
            context.prec = DIGITS + 10
            if exact.adjusted() > DIGITS:
                return exact
            unit = Decimal(1).scaleb(-(self.scale or 0))
            return exact.quantize(unit, ROUND_HALF_UP) + 0  # + 0 turns -0.00 into 0.00

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
        """A stored value as MySQL prints it; None for NULL."""
        if value is None:
            return None
        if isinstance(value, float) and self.is_single and self.scale is None:
            value = shown_single(value)
        if isinstance(value, int | float) and self.kind != "INT" and self.scale is not None:
            return decimal_text(value, self.scale)
        return as_text(value)


def _with_article(declared: str) -> str:
    return f"an {declared}" if declared[0] in "AEIOU" else f"a {declared}"


def _literal(text: str) -> str:
    """A MySQL string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


@lru_cache(maxsize=1024)
def column_type(declared: str) -> ColumnType:
    """The column type for a data set's declaration. Raises ValueError if it is not supported."""
    try:
        read = read_declaration(declared)
        type_ = None if read is None else _type(read)
        if read is not None and type_ is not None:
            return _with_rules(type_, read)
        reason = (
            "use one of MySQL's for whole numbers (INT, BIGINT),"
            f" numbers (DECIMAL(10,2), at most {MAX_DIGITS} digits, DOUBLE), texts (TEXT,"
            " VARCHAR(50)) or times (DATE, DATETIME)"
        )
    except ValueError as error:
        reason = str(error)
    message = f"column type {declared!r} is not supported; {reason}"
    raise ValueError(message)


def _with_rules(type_: ColumnType, read: Declaration) -> ColumnType:
    """The type with its column's rules.

    Raises ValueError for rules that MySQL forbids for the type.
    """
    rules = read.rules
    is_unlimited = read.name in TEXTS
    if rules.is_key and (is_unlimited or (type_.max_characters or 0) > MAX_KEY):
        refuse_type("VARCHAR(50)", read.type, "which is too long for PRIMARY KEY and UNIQUE")
    if rules.is_numbered:
        if type_.kind != "INT" or read.name == "YEAR":
            refuse_attribute("AUTO_INCREMENT", "it needs a column of whole numbers")
        if not rules.is_key:
            refuse_type("AUTO_INCREMENT PRIMARY KEY", "AUTO_INCREMENT", "which needs a key")
    if rules.default is None:
        return replace(type_, rules=rules)
    if is_unlimited:
        refuse_type("VARCHAR(50)", read.type, "which has no default")
    if rules.is_numbered:
        refuse_attribute("DEFAULT", "the column is AUTO_INCREMENT")
    try:
        default = type_.value(rules.default)
    except ValueError as error:
        refuse_attribute("DEFAULT", str(error))
    return replace(type_, rules=replace(rules, default=default))


def _type(read: Declaration) -> ColumnType | None:  # noqa: PLR0911  # one per kind
    name, written, sizes = read.name, read.type, read.sizes
    length, scale = (*sizes, None, None)[:2]
    is_unsigned = bool(read.is_unsigned)
    if name in BYTES and scale is None:
        bits = 8 * BYTES[name]
        low, high = (0, 2**bits - 1) if is_unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        # The embedded database's integers have 64 bits.
        return ColumnType("INT", written, low=low, high=min(high, 2**63 - 1))
    if name == "DECIMAL":
        return _exact("DECIMAL", written, length or 10, scale or 0, is_unsigned=is_unsigned)
    if name in DOUBLES:
        return _inexact(name, written, length, scale, is_unsigned=is_unsigned)
    if read.is_unsigned is not None or scale is not None:
        return None
    if name == "YEAR" and length in {None, 4}:
        return ColumnType("INT", written, low=YEARS[0], high=YEARS[1])
    if name in SIZED_TEXTS or name in TEXTS:
        return _text_type(name, length)
    if name in TIMES:
        if length:
            refuse_type(name, written, "whose fractions of a second are not kept here")
        return ColumnType("TEXT", name, time=TIMES[name])
    return None


def _text_type(name: str, length: int | None) -> ColumnType | None:
    if name == "TEXT" and length is not None:
        size = CHARACTER_BYTES * length
        name, length = next((kind for kind, end in TEXT_BYTES.items() if size < end), ""), None
    if name in TEXTS and length is None:
        return ColumnType("TEXT", name, max_characters=TEXTS[name])
    if name == "VARCHAR" and length is None:
        refuse_type("VARCHAR(50)", name, "which needs a length")
    if name not in SIZED_TEXTS:
        return None
    size = 1 if length is None else length
    declared = name if length is None else f"{name}({length})"
    return ColumnType("TEXT", declared, max_characters=size, is_padded=name == "CHAR")


def _exact(
    kind: Kind, written: str, digits: int, scale: int, *, is_unsigned: bool
) -> ColumnType | None:
    """A type with a fixed number of decimals; None if doubles cannot hold its digits exactly."""
    if not 0 < digits <= MAX_DIGITS or scale > digits:
        return None
    return ColumnType(kind, written, digits=digits, scale=scale, is_unsigned=is_unsigned)


def _inexact(
    name: str, written: str, length: int | None, scale: int | None, *, is_unsigned: bool
) -> ColumnType | None:
    bits = 0
    type_: ColumnType | None
    if scale is not None:
        type_ = _exact("DOUBLE", written, length or 0, scale, is_unsigned=is_unsigned)
    elif length is None or name == "FLOAT":
        bits = length or 0
        type_ = ColumnType("DOUBLE", written, is_unsigned=is_unsigned)
    else:
        type_ = None
    is_single = name == "FLOAT" and bits <= SINGLE_BITS
    return None if type_ is None else replace(type_, is_single=is_single)

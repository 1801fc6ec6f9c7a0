"""MySQL's functions for SQLite: exact decimals, conversion of texts to numbers, and collation.

They are registered on connections whose statements are read as MySQL's (`mysql_dialect`).
"""

import re
import sqlite3
import unicodedata
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import lru_cache
from typing import Final

from producer.sql_execution.mysql_values import (
    as_text,
    decimal_text,
    shown_single,
    single,
    time_text,
)

COLLATION: Final = "mysql_general_ci"
LEADING_NUMBER: Final = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")
MAX_PATTERN: Final = 200

Value = int | float | str | bytes | None


def collation_key(text: str) -> str:
    """A key that is equal for texts that differ only in case, accents or trailing spaces."""
    text = text.rstrip(" ")
    if text.isascii():
        return text.upper()
    bare = (unicodedata.normalize("NFD", character)[0] for character in text)
    return "".join(character.upper()[:1] for character in bare)


def _compare(left: str, right: str) -> int:
    one, other = collation_key(left), collation_key(right)
    return (one > other) - (one < other)


def as_number(value: Value) -> int | float | None:
    """The number by which MySQL compares a text: its numeric prefix, else 0."""
    if value is None or isinstance(value, int | float):
        return value
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    match = LEADING_NUMBER.match(text)
    if match is None:
        return 0
    return int(match[1]) if re.fullmatch(r"[+-]?\d{1,15}", match[1]) else float(match[1])


def rounded(value: Value, places: Value) -> int | float | None:
    """ROUND of a DECIMAL: halves away from zero."""
    number, digits = as_number(value), as_number(places)
    if number is None or digits is None:
        return None
    wanted = max(-30, min(30, int(digits)))
    try:
        exact = Decimal(repr(number)).quantize(Decimal(1).scaleb(-wanted), ROUND_HALF_UP)
    except InvalidOperation:
        return number
    return int(exact) if isinstance(number, int) or wanted <= 0 else float(exact)


def remainder(value: Value, divisor: Value) -> int | float | None:
    """`%` and MOD: the result has the sign of the first operand; NULL for a zero divisor."""
    number, by = as_number(value), as_number(divisor)
    if number is None or by is None or by == 0:
        return None
    exact = Decimal(repr(number)) % Decimal(repr(by))
    return int(exact) if isinstance(number, int) and isinstance(by, int) else float(exact)


def quotient(value: Value, divisor: Value) -> int | None:
    """DIV: truncates toward zero; NULL for a zero divisor."""
    number, by = as_number(value), as_number(divisor)
    if number is None or by is None or by == 0:
        return None
    return int(Decimal(repr(number)) / Decimal(repr(by)))


def concatenated(*values: Value) -> str | None:
    """CONCAT: NULL if any value is NULL."""
    if any(value is None for value in values):
        return None
    return "".join(as_text(value) for value in values if value is not None)


def joined(separator: Value, *values: Value) -> str | None:
    """CONCAT_WS: skips NULL values; NULL if the separator is NULL."""
    if separator is None:
        return None
    return as_text(separator).join(as_text(value) for value in values if value is not None)


def left(text: Value, length: Value) -> str | None:
    """LEFT."""
    count = as_number(length)
    return None if text is None or count is None else as_text(text)[: max(int(count), 0)]


def right(text: Value, length: Value) -> str | None:
    """RIGHT."""
    count = as_number(length)
    if text is None or count is None:
        return None
    return as_text(text)[-int(count) :] if int(count) > 0 else ""


def upper(text: Value) -> str | None:
    """UPPER, also for letters outside ASCII."""
    return None if text is None else as_text(text).upper()


def lower(text: Value) -> str | None:
    """LOWER, also for letters outside ASCII."""
    return None if text is None else as_text(text).lower()


def text_of(value: Value) -> str | None:
    """A value as MySQL writes it in a text."""
    return None if value is None else as_text(value)


def decimal_as_text(value: Value, scale: Value) -> str | None:
    """A DECIMAL as a text with `scale` digits after the point."""
    number, digits = as_number(value), as_number(scale)
    return None if number is None or digits is None else decimal_text(number, int(digits))


def stored_single(value: Value) -> Value:
    """A value as a FLOAT column stores it."""
    return single(value) if isinstance(value, int | float) else value


def shown_float(value: Value) -> Value:
    """A value as a FLOAT column is displayed."""
    return shown_single(value) if isinstance(value, int | float) else value


def stored_time(kind: Value, value: Value) -> str | None:
    """A value as a DATE, DATETIME or TIME column stores it; None if the column rejects it."""
    if value is None or kind not in {"DATE", "DATETIME", "TIME"}:
        return None
    return time_text(kind, as_text(value))  # type: ignore[arg-type]  # one of them


def matches(pattern: Value, value: Value) -> int | None:
    """REGEXP, ignoring case. Raises ValueError for an invalid or too long pattern."""
    if pattern is None or value is None:
        return None
    return int(_compiled(as_text(pattern)).search(as_text(value)) is not None)


def like(pattern: Value, value: Value, escape: Value = None) -> int | None:
    """LIKE, ignoring case and accents. Raises ValueError for a pattern that is too long."""
    if pattern is None or value is None:
        return None
    wanted, mark = as_text(pattern), "" if escape is None else as_text(escape)
    _check_length(wanted)
    return int(_is_like(_like_parts(wanted, mark), [_folded(item) for item in as_text(value)]))


def _folded(character: str) -> str:
    return unicodedata.normalize("NFD", character)[0].upper()[:1]


def _like_parts(pattern: str, escape: str) -> list[tuple[str, bool]]:
    """For each element of the pattern: the character, and whether it is literal."""
    parts: list[tuple[str, bool]] = []
    is_escaped = False
    for character in pattern:
        if character == escape and not is_escaped:
            is_escaped = True
            continue
        is_wildcard = character in "%_" and not is_escaped
        parts.append((character if is_wildcard else _folded(character), not is_wildcard))
        is_escaped = False
    return parts


def _is_like(parts: list[tuple[str, bool]], text: list[str]) -> bool:
    """Match greedily with a single backtracking point: at most len(pattern) * len(text) steps."""
    at = place = 0
    back: tuple[int, int] | None = None
    while at < len(text):
        part, is_itself = parts[place] if place < len(parts) else ("", True)
        if part == "%" and not is_itself:
            back = (place, at)
            place += 1
        elif part and (part == text[at] if is_itself else part == "_"):
            at, place = at + 1, place + 1
        elif back is not None:
            back = (back[0], back[1] + 1)
            place, at = back[0] + 1, back[1]
        else:
            return False
    return all(part == "%" and not is_itself for part, is_itself in parts[place:])


def _check_length(pattern: str) -> None:
    if len(pattern) > MAX_PATTERN:
        message = f"the pattern has {len(pattern)} characters; {MAX_PATTERN} are allowed"
        raise ValueError(message)


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    _check_length(pattern)
    return re.compile(pattern, re.IGNORECASE)


FUNCTIONS: Final[dict[str, tuple[Callable[..., Value], int]]] = {
    "mysql_number": (as_number, 1),
    "mysql_text": (text_of, 1),
    "mysql_decimal_text": (decimal_as_text, 2),
    "mysql_time": (stored_time, 2),
    "mysql_single": (stored_single, 1),
    "mysql_shown_float": (shown_float, 1),
    "mysql_round": (rounded, 2),
    "mysql_mod": (remainder, 2),
    "mysql_div": (quotient, 2),
    "mysql_concat": (concatenated, -1),
    "mysql_concat_ws": (joined, -1),
    "mysql_left": (left, 2),
    "mysql_right": (right, 2),
    "upper": (upper, 1),
    "lower": (lower, 1),
    "regexp": (matches, 2),
}
"""Maps a name to the function and its number of arguments; -1 for any number."""


def register(connection: sqlite3.Connection) -> None:
    """Register the functions and the collation on a connection."""
    connection.create_collation(COLLATION, _compare)
    for num_arguments in (2, 3):
        connection.create_function("like", num_arguments, like, deterministic=True)
    for name, (function, num_arguments) in FUNCTIONS.items():
        connection.create_function(name, num_arguments, function, deterministic=True)

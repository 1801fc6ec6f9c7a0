"""What one field of another project's file means here: a row of a table."""

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite, nan
from typing import Any, Final, NamedTuple

UNUSABLE: Final = "cannot be honoured; use one of {names}"
NO_CHOICE: Final = "is not one of {names}"

Convert = Callable[[Any], Any]
"""From the file's value to ours; None: nothing follows. ValueError: it cannot be honoured."""


class Noted(NamedTuple):
    """A converted value with a remark about it."""

    value: Any
    remark: str


@dataclass(frozen=True, slots=True)
class Row:
    """A field is ours, or without effect."""

    ours: str = ""
    """The field it becomes; empty: none."""
    convert: Convert | None = None
    when: str = ""
    """The condition under which it has an effect; empty: always."""
    default: Any = None
    """The other project's own value where the file has none, and the condition holds."""
    why: str = ""
    """Why it is without effect; empty: it is honoured."""


Table = dict[str, Row]
"""Dotted name -> row. A name that ends with `.` is everything below it that has no row."""


def same(ours: str, convert: Convert | None = None, *, when: str = "", default: Any = None) -> Row:
    """The field is one of ours, with the same value or a converted one."""
    return Row(ours, convert, when, default)


def one_of(ours: str, values: dict[Any, Any], problem: str = UNUSABLE, **more: Any) -> Row:
    """As `same`; the file's values, and what each is here (None: nothing follows)."""
    return same(ours, chosen(values, problem), **more)


def only(*values: Any, instead: str) -> Row:
    """The values that mean what is done anyway; `instead`: what to do about another."""
    return one_of("", dict.fromkeys(values), f"cannot be honoured: {instead}")


def switch() -> Row:
    """A field that decides about others, by the format's conditions."""
    return Row()


def without_effect(sections: dict[str, dict[str, str]]) -> Table:
    """Rows of fields from which nothing follows: section -> why -> names between blanks."""
    return {
        f"{section}{name}": Row(why=why)
        for section, reasons in sections.items()
        for why, names in reasons.items()
        for name in names.split()
    }


def chosen(values: dict[Any, Any], problem: str = UNUSABLE) -> Convert:
    """From the file's word to ours. `problem` of another word, with {names} for those there are."""

    def convert(value: Any) -> Any:
        for known, meaning in values.items():
            if value == known:
                return meaning
        message = f"{value!r} {problem.format(names=', '.join(map(str, values)))}"
        raise ValueError(message)

    return convert


def number(value: Any) -> float:
    """A finite number, also as text."""
    try:
        read = nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        read = nan
    if not isfinite(read):
        message = f"{value!r} cannot be honoured; use a number"
        raise ValueError(message)
    return read


def count(value: Any) -> int:
    """A whole number above 0, also as text."""
    try:
        read = number(value)
    except ValueError:
        read = 0.0
    if read < 1 or not read.is_integer():
        message = f"{value!r} is not a whole number above 0"
        raise ValueError(message)
    return int(read)

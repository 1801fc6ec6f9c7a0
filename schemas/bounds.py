"""Bounds of the tables' columns that a type of pydantic's does not have.

The emitter refuses an event beyond them, the fold parks it and everything later in its stream.
Whatever names of a user's go there are checked before a training begins.
"""

from functools import cache
from typing import Final, get_args

from pydantic import BaseModel

from schemas.base import Big, OfKey, Payload, Value

MAX_KEY_BYTES: Final = 1_000
"""Of a text in a natural key; two of them fit an index, which takes 2,704 bytes."""
COLUMN_LIMIT: Final = 2**31
"""An integer is at least -COLUMN_LIMIT and less than it, unless it is marked as Big."""
BIG_COLUMN_LIMIT: Final = 2**63
AS_JSON: Final = frozenset({"actions", "tokens"})
"""Fields that are stored as JSON, whose integers have no bound."""

Path = tuple[str, ...]
"""Names of fields, from the payload's to that of a value inside."""


class OutOfBoundsError(ValueError):
    """A text or number that the tables' columns do not take."""


def check_key_text(what: str, text: str) -> None:
    """OutOfBoundsError for a text in a natural key that an index cannot tell from others."""
    size = len(text.encode(errors="surrogatepass"))
    if "\x00" in text or size > MAX_KEY_BYTES:
        found = f"{size} bytes" if size > MAX_KEY_BYTES else "a NUL"
        message = (
            f"{what} must have at most {MAX_KEY_BYTES} bytes of UTF-8 and no NUL; {text[:40]!r}"
            f" {'has' if size <= MAX_KEY_BYTES else '... has'} {found}"
        )
        raise OutOfBoundsError(message)


def check_key_texts(payload: Payload) -> None:
    """OutOfBoundsError for any text in a natural key of this payload."""
    for path in key_paths(type(payload)):
        _check(payload, path, path[-1], 0)


def check_numbers(payload: Payload) -> None:
    """OutOfBoundsError for an integer of this payload that its column cannot store."""
    for path, limit in number_paths(type(payload)):
        value = getattr(payload, path[0])
        # Most are: a projector asks this of every event.
        if value is None or (type(value) is int and -limit <= value < limit):
            continue
        _check(value, path[1:], path[-1], limit)


def _check(value: object, path: Path, what: str, limit: int) -> None:
    if isinstance(value, tuple):
        for item in value:
            _check(item, path, what, limit)
    elif path:
        if value is not None:
            _check(getattr(value, path[0]), path[1:], what, limit)
    elif isinstance(value, str):
        check_key_text(what, value)
    elif isinstance(value, int) and not -limit <= value < limit:
        message = f"{what} must be at least {-limit} and less than {limit}, not {value}"
        raise OutOfBoundsError(message)


@cache
def key_paths(model: type[Value]) -> tuple[Path, ...]:
    """The fields that hold texts of natural keys."""
    found: list[Path] = []
    for name, field in model.model_fields.items():
        if any(isinstance(mark, OfKey) for mark in field.metadata):
            found.append((name,))
        for part in _values_in(field.annotation):
            found += [(name, *path) for path in key_paths(part)]
    return tuple(found)


@cache
def number_paths(model: type[Value]) -> tuple[tuple[Path, int], ...]:
    """The fields that hold integers, each with its limit."""
    found: list[tuple[Path, int]] = []
    for name, field in model.model_fields.items():
        if name in AS_JSON:
            continue
        if _holds_int(field.annotation):
            is_big = any(isinstance(mark, Big) for mark in field.metadata)
            found.append(((name,), BIG_COLUMN_LIMIT if is_big else COLUMN_LIMIT))
        for part in _values_in(field.annotation):
            found += [((name, *path), limit) for path, limit in number_paths(part)]
    return tuple(found)


def _holds_int(annotation: object) -> bool:
    return annotation is int or any(_holds_int(part) for part in get_args(annotation))


def _values_in(annotation: object) -> list[type[Value]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation] if issubclass(annotation, Value) else []
    return [value for part in get_args(annotation) for value in _values_in(part)]

"""JSON that users write: what would hide a value, or fit no event, is refused.

All errors are ValueErrors: JSONDecodeError for a text that is no JSON, else RefusedJsonError.
"""

import json
from collections.abc import Callable
from typing import Any, Final, Never

from pydantic import JsonValue

from producer.bounded_text import is_deeper

MAX_DEPTH: Final = 100
"""Of nested lists and objects. An event is read to a depth of 200."""
TOO_DEEP: Final = f"nested too deeply; at most {MAX_DEPTH} lists and objects can be nested"


class RefusedJsonError(ValueError):
    """JSON that is not taken; the message says what to do."""


def read_json(text: str) -> JsonValue:
    """The value of a text. JSONDecodeError, RefusedJsonError."""
    return _read(text)


def read_strict(text: str) -> JsonValue:
    """As `read_json`; NaN and infinity, which are no JSON, are refused."""
    return _read(text, _no_number)


def unique_fields(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    """An object's names and values. RefusedJsonError for a name that is given twice."""
    fields: dict[str, JsonValue] = {}
    for name, value in pairs:
        if name in fields:
            message = f"{name!r} is given twice in one object; remove one of them"
            raise RefusedJsonError(message)
        fields[name] = value
    return fields


def _read(text: str, parse_constant: Callable[[str], Any] | None = None) -> JsonValue:
    try:
        value: JsonValue = json.loads(
            text, object_pairs_hook=unique_fields, parse_constant=parse_constant
        )
    except RecursionError:
        raise RefusedJsonError(TOO_DEEP) from None
    except (json.JSONDecodeError, RefusedJsonError):
        raise
    except ValueError:
        message = "a number has more than 4,300 digits, which Python does not read; shorten it"
        raise RefusedJsonError(message) from None
    if is_deeper(value, MAX_DEPTH):
        raise RefusedJsonError(TOO_DEEP)
    return value


def _no_number(name: str) -> Never:
    message = f"{name} is no number that JSON has"
    raise RefusedJsonError(message)

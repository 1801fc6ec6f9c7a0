"""JSON that users write: a name that is given twice would hide one of its values."""

import json
from typing import Never

from pydantic import JsonValue


class RepeatedNameError(ValueError):
    """An object has one name twice."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name!r} is given twice in one object")
        self.name = name


def read_json(text: str) -> JsonValue:
    """The value of a text. RepeatedNameError, JSONDecodeError, RecursionError."""
    value: JsonValue = json.loads(text, object_pairs_hook=unique_fields)
    return value


def read_strict(text: str) -> JsonValue:
    """As `read_json`; NaN and infinity, which are no JSON, are a ValueError."""
    value: JsonValue = json.loads(text, object_pairs_hook=unique_fields, parse_constant=_no_number)
    return value


def unique_fields(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    """An object's names and values. RepeatedNameError."""
    fields: dict[str, JsonValue] = {}
    for name, value in pairs:
        if name in fields:
            raise RepeatedNameError(name)
        fields[name] = value
    return fields


def _no_number(name: str) -> Never:
    message = f"{name} is no number that JSON has"
    raise ValueError(message)

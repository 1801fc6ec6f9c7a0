"""Explains a mistake in a task source: pydantic's errors in plain words, with what is allowed."""

import json
import re
from collections.abc import Iterator
from typing import get_args

from pydantic import BaseModel, ValidationError

from producer.errors import did_you_mean
from producer.field_errors import value_problem

MAX_VALUE_LENGTH = 80
"""Characters of a wrong value that a message repeats."""
UNION_TAGS = ("str", "int", "bool")
"""What pydantic appends to the location of a field that is a union."""


def explain_mistake(error: ValidationError, schema: type[BaseModel]) -> str:  # noqa: PLR0911  # one per kind
    """The first mistake, led by the path of its field: `.limit: 0 is out of range`."""
    first = error.errors()[0]
    location, value = tuple(part for part in first["loc"] if part not in UNION_TAGS), first["input"]
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    match first["type"]:
        case "value_error":
            return path + explain_reason(first["msg"].removeprefix("Value error, "))
        case "extra_forbidden":
            fields = list(_schema_at(schema, location[:-1]).model_fields)
            hint = did_you_mean(str(location[-1]), fields)
            return f"{path}: unknown field.{hint} The fields are {', '.join(fields)}"
        case "literal_error":
            choices = re.findall("'([^']+)'", first["ctx"]["expected"])
            hint = did_you_mean(str(value), choices)
            return f"{path}: unknown value {_shorten(value)}.{hint} Use one of {', '.join(choices)}"
        case "missing":
            field = _schema_at(schema, location[:-1]).model_fields[str(location[-1])]
            choices = [str(choice) for choice in get_args(field.annotation)]
            return f"{path}: required" + (f"; use one of {', '.join(choices)}" if choices else "")
        case "too_short" | "string_too_short":
            return f"{path}: must not be empty"
        case "json_invalid":
            return ": contains text that is not valid Unicode"
        case _:
            return f"{path}: {value_problem(first)}"


def explain_reason(reason: str) -> str:
    """What follows a path: a rule over several fields starts with the name of its field."""
    return ("." if re.match(r"\w+: ", reason) else ": ") + reason


def _shorten(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= MAX_VALUE_LENGTH else text[: MAX_VALUE_LENGTH - 3] + "..."


def _schema_at(schema: type[BaseModel], location: tuple[int | str, ...]) -> type[BaseModel]:
    """The schema of the object at a location inside `schema`."""
    for part in location:
        if isinstance(part, str):
            schema = next(_schemas_in(schema.model_fields[part].annotation))
    return schema


def _schemas_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _schemas_in(argument)

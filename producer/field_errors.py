"""pydantic's validation errors in plain words, one line for each problem."""

import json
import textwrap
from collections.abc import Collection

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from producer.errors import did_you_mean

TYPES = {
    "bool": "true or false",
    "int": "an integer",
    "float": "a number",
    "finite": "a finite number",
    "string": "text",
    "path": "a path",
    "list": "a list",
    "tuple": "a list",
    "dict": "an object",
    "model": "an object",
}
"""First word of pydantic's error type -> what the field takes."""
BOUNDS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
}
"""pydantic's error type -> the key of its bound, and its words."""
SHOWN_CHARACTERS = 80
LINE_CHARACTERS = 76


def field_problems(error: ValidationError, fields: Collection[str]) -> list[str]:
    """One line for each problem, led by the field; unknown fields bring the list of `fields`."""
    details = error.errors(include_url=False)
    problems = [line for item in details for line in _problem(item, fields).splitlines()]
    if any(item["type"] == "extra_forbidden" for item in details):
        listed = f"the fields are: {', '.join(fields)}"
        problems += textwrap.wrap(listed, LINE_CHARACTERS, subsequent_indent="  ")
    return problems


def _problem(item: ErrorDetails, fields: Collection[str]) -> str:
    field = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        return f"{field}: there is no such field.{did_you_mean(field, fields)}"
    if item["type"] == "value_error" and not field:
        # A rule over several fields names its fields itself.
        return str(item["ctx"]["error"])
    return f"{field}: {what_is_wrong(item)}"


def what_is_wrong(item: ErrorDetails) -> str:
    """What is wrong with one value, without its field: `0 is out of range; ...`."""
    kind, context, value = item["type"], item.get("ctx", {}), _shown(item["input"])
    if kind == "value_error":
        return str(context["error"])
    if kind == "missing":
        return "is missing"
    if kind == "literal_error":
        choices = str(context["expected"]).replace("'", "").replace(" or ", ", ")
        meant = did_you_mean(str(item["input"]), choices.split(", "))
        return f"{value} is not one of {choices}" + (f".{meant}" if meant else "")
    if kind in BOUNDS:
        key, words = BOUNDS[kind]
        return f"{value} is out of range; it must be {words} {_number(context[key])}"
    wanted = TYPES.get("int" if kind == "int_from_float" else kind.partition("_")[0])
    return f"{value} is not {wanted}" if wanted else f"{value} is not valid ({kind})"


def _number(bound: float) -> str:
    return f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."

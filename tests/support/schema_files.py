"""Renders the JSON Schema of each payload class; `make docs` writes `schemas/json`.

A file is replaced only by what reads everything that the old one allowed.
"""

import json
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel, JsonValue
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema

from consumers.tables.comments import attribute_docs
from schemas.base import Payload
from schemas.catalogue import PAYLOADS
from schemas.json_schemas import FOLDER, JsonSchema, read_schema, schema_path
from schemas.wire import SCHEMA_PREFIX
from tests.support.schema_compatibility import incompatibilities

DIALECT = "https://json-schema.org/draft/2020-12/schema"
ORDER: tuple[str, ...] = (
    "$schema",
    "$id",
    "title",
    "description",
    "type",
    "x-entity",
    "x-status",
    "x-creates",
)
ORDER += ("(any other)", "$defs")
UTC = r"(Z|[+-]00:00)$"


class _AsWritten(GenerateJsonSchema):
    """What is in the log: numbers that are not finite as text, every time in UTC."""

    def float_schema(self, schema: core_schema.FloatSchema) -> JsonSchemaValue:
        """A number, or the text of one that JSON has no number for."""
        has_lower, has_upper = (
            ("ge" in schema or "gt" in schema),
            ("le" in schema or "lt" in schema),
        )
        texts = [
            *([] if has_lower or has_upper else ["NaN"]),
            *([] if has_upper else ["Infinity"]),
            *([] if has_lower else ["-Infinity"]),
        ]
        if schema.get("allow_inf_nan") is False:
            texts = []
        number = super().float_schema(schema)
        return {"anyOf": [number, {"enum": texts}]} if texts else number

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """With what a factory makes: it is what an event without the field means."""
        make: Any = schema.get("default_factory")
        if make is None:
            return super().default_schema(schema)
        return super().default_schema({**schema, "default": make()})

    def datetime_schema(self, schema: core_schema.DatetimeSchema) -> JsonSchemaValue:
        """RFC 3339 in UTC."""
        return super().datetime_schema(schema) | {"pattern": UTC}

    def get_title_from_name(self, name: str) -> str:
        """Fields have no title; their name is one."""
        return name


def render(payload: type[Payload]) -> JsonSchema:
    """The schema of a payload class, with its docs and with what it does to a status."""
    mode: JsonSchemaMode = "validation"
    schema = payload.model_json_schema(schema_generator=_AsWritten, mode=mode)
    definitions = schema.pop("$defs", {})
    classes = _values(payload)
    for name, definition in definitions.items():
        if name in classes:
            _document(definition, classes[name])
    _document(schema, payload)
    head = {
        "$schema": DIALECT,
        "$id": f"{SCHEMA_PREFIX}{payload.TYPE}:{payload.VERSION}",
        "x-entity": payload.ENTITY,
        "x-status": payload.STATUS,
        "x-creates": payload.CREATES or None,
    }
    whole = {name: value for name, value in head.items() if value is not None} | schema
    return whole | ({"$defs": definitions} if definitions else {})


def _document(schema: dict[str, Any], cls: type[BaseModel]) -> None:
    docs = attribute_docs(cls, "schemas")
    schema["description"] = " ".join((cls.__doc__ or "").split())
    for name, field in schema.get("properties", {}).items():
        field.pop("title", None)
        if name in docs:
            field["description"] = docs[name]
        if "const" in field and name not in schema.get("required", ()):
            # The tag of a union: its default spares the caller, but a reader needs it.
            schema.setdefault("required", []).append(name)


def _values(cls: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """The classes of a payload's parts by name."""
    found: dict[str, type[BaseModel]] = {}

    def visit(annotation: Any) -> None:
        is_part = isinstance(annotation, type) and issubclass(annotation, BaseModel)
        if is_part and annotation.__name__ not in found:
            found[annotation.__name__] = annotation
            for field in annotation.model_fields.values():
                visit(field.annotation)
        for argument in getattr(annotation, "__args__", ()):
            visit(argument)

    visit(cls)
    return found


def text(schema: JsonSchema) -> str:
    """A schema as its file has it: what it is about first, its definitions last."""
    return json.dumps(_in_order(schema), indent=1, ensure_ascii=False) + "\n"


def _in_order(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [_in_order(item) for item in value]
    if not isinstance(value, dict):
        return value
    names = sorted(value, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER) - 2)
    return {name: _in_order(value[name]) for name in names}


def write_all(payloads: tuple[type[Payload], ...] = PAYLOADS, folder: Path = FOLDER) -> list[str]:
    """Write every file that is stale; returns why some may not be written."""
    refused = []
    for payload in payloads:
        path = schema_path(payload.TYPE, payload.VERSION, folder)
        new = render(payload)
        if path.exists():
            found = incompatibilities(read_schema(payload.TYPE, payload.VERSION, folder), new)
            if found:
                refused += [f"{payload.TYPE} version {payload.VERSION}: {line}" for line in found]
                continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(new), encoding="utf-8")
    return refused


if __name__ == "__main__":
    if problems := write_all():
        sys.stderr.write(
            "\n".join(problems)
            + "\nthese changes break the reading of events already written: raise the VERSION of"
            " the class and add an upcaster (schemas/upcasting.py)\n"
        )
        sys.exit(1)
    sys.stderr.write("wrote schemas/json\n")

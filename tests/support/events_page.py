"""Renders docs/events.md from the payload classes: `make docs` writes it.

What an event does to which table is what the fold does with the events of generated trainings.
"""

import sys
from collections import defaultdict
from typing import Any, cast

from consumers.fold.projectors.registry import HOMES
from consumers.fold.rows import Insert, Operation, Update
from schemas.base import Payload
from schemas.catalogue import PAYLOADS
from schemas.decision import DECISIONS
from schemas.json_schemas import JsonSchema, read_schema, schema_versions
from tests.reference_fold.histories import history
from tests.support.memory_tables import effects
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "events.md"
HEAD = """# Events

What a run can record. Written by `make docs` from `schemas/`. Every type and version has a JSON
Schema in `schemas/json/`, which `cua-project schema TYPE` prints, and an example in
`tests/data/events/`. The envelope, streams and epochs are in
[streams-and-epochs.md](streams-and-epochs.md), the tables in [tables.md](tables.md).

Within a version a change reads every event already written as before: a new optional field,
another value, a wider bound. Any other change raises the version and brings an upcaster;
`tests/schemas/test_json_schemas.py` holds that.

A number that may be infinite is written as "NaN", "Infinity" or "-Infinity" where JSON has no
number for it. Times are RFC 3339 in UTC.
"""
HISTORIES = 30
Schema = dict[str, Any]


def render() -> str:
    """The whole page."""
    done = _effects()
    parts: dict[str, Schema] = {}
    sections = []
    for payload in PAYLOADS:
        schema = cast("Schema", read_schema(payload.TYPE, payload.VERSION))
        parts |= schema.get("$defs", {})
        sections.append(_section(payload, schema, done[payload.TYPE]))
    parts.pop("JsonValue", None)
    tail = ["# Parts of events", ""]
    tail += [_part(name, parts[name]) for name in sorted(parts)]
    return "\n".join([HEAD, *sections, *tail])


def _effects() -> dict[str, dict[str, set[str]]]:
    """Type -> table -> what it does there."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for seed in range(HISTORIES):
        for effect in effects(history(f"run-{seed}", seed)):
            for operation in effect.operations:
                found[effect.type][operation.table].add(_verb(operation))
    return found


def _verb(operation: Operation) -> str:
    match operation:
        case Insert():
            return "inserts"
        case Update():
            return "updates"
        case _:
            return "upserts"


def _section(payload: type[Payload], schema: JsonSchema, done: dict[str, set[str]]) -> str:
    versions = schema_versions()[payload.TYPE]
    streams = ", ".join(f"`{kind}/<id>`" for kind in sorted(HOMES[payload]))
    streams = "any, without `epoch` and `sequence`" if payload in DECISIONS else streams
    lines = [f"## {payload.TYPE}", "", str(schema["description"]), ""]
    older = ", ".join(map(str, versions[:-1]))
    lines.append(f"- version {payload.VERSION}" + (f"; still read: {older}" if older else ""))
    lines.append(f"- stream {streams}")
    if payload.ENTITY is not None:
        change = f"becomes *{payload.STATUS}*" if payload.STATUS else "keeps its status"
        made = "is made; it " if payload.CREATES else ""
        lines.append(f"- the {payload.ENTITY} {made}{change}")
    tables = [
        f"{' or '.join(sorted(verbs))} {table}"
        for table, verbs in sorted(done.items())
        if table != "status_history"
    ]
    tables += ["adds to status_history"] if "status_history" in done else []
    rows = ", ".join(tables) or "none; it decides about records of its stream"
    lines.append(f"- rows: {rows}")
    return "\n".join([*lines, "", *_fields(schema), ""])


def _part(name: str, schema: Schema) -> str:
    heading = [f"## {name}", "", str(schema.get("description", "")), ""]
    return "\n".join([*heading, *_fields(schema), ""])


def _fields(schema: JsonSchema) -> list[str]:
    properties = cast("Schema", schema.get("properties", {}))
    if not properties:
        return ["No fields."]
    lines = ["| field | type | |", "|---|---|---|"]
    required = cast("list[str]", schema.get("required", []))
    for name, field in properties.items():
        kind = _kind(field)
        if name not in required:
            kind += f", default {_default(field.get('default'))}"
        note = "Which one it is." if "const" in field else str(field.get("description", ""))
        note = note.replace("|", "\\|")
        lines.append(f"| {name} | {kind} | {note} |")
    return lines


def _default(value: object) -> str:
    return {"None": "null", "{}": "{}", "[]": "[]"}.get(str(value), str(value))


def _kind(field: Schema) -> str:
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return "any JSON" if name == "JsonValue" else f"[{name}](#{name.lower()})"
    if choices := field.get("anyOf") or field.get("oneOf"):
        # "NaN" and the infinities are said once, at the top.
        shown = [_kind(choice) for choice in choices if "NaN" not in choice.get("enum", [])]
        return " or ".join(item for item in shown if item != '"Infinity"')
    if "const" in field:
        return f'"{field["const"]}"'
    if "enum" in field:
        return ", ".join(f'"{value}"' for value in field["enum"])
    return _type(field)


def _type(field: Schema) -> str:  # noqa: PLR0911  # one case per type
    match field.get("type"):
        case "string":
            return _text_kind(field)
        case "integer" | "number" as name:
            return f"{name}{_range(field)}"
        case "array":
            if "prefixItems" in field:
                return "[" + ", ".join(_kind(item) for item in field["prefixItems"]) + "]"
            return f"list of {_kind(field.get('items', {}))}"
        case "object":
            return f"map of {_kind(field.get('additionalProperties', {}))}"
        case None:
            return "any JSON"
        case other:
            return str(other)


def _text_kind(field: Schema) -> str:
    if "dtype" in field:
        numbers = {"<i4": "int32", "<f4": "float32"}[field["dtype"]]
        return f"base64 of little-endian {numbers}"
    if "sha256" in field.get("pattern", ""):
        return "`blob:sha256:…`"
    return {"uuid": "uuid", "date-time": "time"}.get(field.get("format", ""), "text")


def _range(field: Schema) -> str:
    words = (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"))
    return "".join(f" {sign} {field[word]:g}" for word, sign in words if word in field)


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    sys.stderr.write(f"wrote {PAGE.relative_to(ROOT)}\n")

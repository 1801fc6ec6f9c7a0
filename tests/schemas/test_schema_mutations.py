"""What the comparison of schemas lets pass, a validator of JSON Schema lets pass as well.

Rules of the real schema files are edited at random; jsonschema judges events drawn from the file as
it was.
"""

import copy
import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from schemas.json_schemas import read_schema, schema_versions
from tests.support.schema_compatibility import incompatibilities
from tests.support.schema_values import draw

Schema = dict[str, Any]
Mutation = Callable[[Schema, Random], bool]
"""Changes a rule in place; false where there is nothing for it to change."""
FILES = [(type_, version) for type_, all_ in schema_versions().items() for version in all_]
NUM_TRIES = 60
NUM_EVENTS = 12
"""Drawn for each edited file."""


def drop_value(rule: Schema, random: Random) -> bool:
    """An enum loses a value."""
    if len(rule.get("enum", ())) < 2:
        return False
    rule["enum"].remove(random.choice(rule["enum"]))
    return True


def add_value(rule: Schema, random: Random) -> bool:
    """An enum has one value more, somewhere."""
    if "enum" not in rule:
        return False
    rule["enum"].insert(random.randint(0, len(rule["enum"])), "another")
    return True


def change_type(rule: Schema, random: Random) -> bool:
    """Another type."""
    if rule.get("type") not in {"string", "integer", "number", "boolean", "null"}:
        return False
    rule["type"] = random.choice(["string", "integer", "number", "boolean"])
    return True


def add_bound(rule: Schema, random: Random) -> bool:
    """A bound, wider or narrower than what is there."""
    numeric = rule.get("type") in {"integer", "number"}
    if not numeric and rule.get("type") not in {"string", "array"}:
        return False
    if numeric:
        names = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]
    else:
        names = ["minLength", "maxLength"] if rule["type"] == "string" else ["minItems", "maxItems"]
    if random.random() < 0.5:
        for name in names:
            rule.pop(name, None)
    rule[random.choice(names)] = random.choice([0, 1, 2, 100, 10**12, -1 if numeric else 0])
    return True


def drop_alternative(rule: Schema, random: Random) -> bool:
    """A union loses a member."""
    members = rule.get("anyOf") or rule.get("oneOf") or []
    if len(members) < 2:
        return False
    members.remove(random.choice(members))
    return True


def shuffle_alternatives(rule: Schema, random: Random) -> bool:
    """A union in another order."""
    if "anyOf" not in rule:
        return False
    random.shuffle(rule["anyOf"])
    return True


def allow_null(rule: Schema, random: Random) -> bool:
    """Null may be there too."""
    del random
    if rule.get("type") not in {"string", "integer", "number", "array"}:
        return False
    was = dict(rule)
    default = {"default": was.pop("default")} if "default" in was else {}
    rule.clear()
    rule |= {"anyOf": [was, {"type": "null"}], **default}
    return True


def require_field(rule: Schema, random: Random) -> bool:
    """A field that was optional, or that is new, must be there."""
    if "properties" not in rule:
        return False
    name = random.choice([*rule["properties"], "new"])
    rule["properties"].setdefault(name, {"type": "string"})
    rule["required"] = sorted({*rule.get("required", ()), name})
    return True


def add_optional(rule: Schema, random: Random) -> bool:
    """A new optional field."""
    if "properties" not in rule:
        return False
    rule["properties"]["new"] = {"type": random.choice(["string", "integer"])}
    return True


def rename_part(rule: Schema, random: Random) -> bool:
    """A reference to its definition under another name."""
    del random
    if "$ref" not in rule:
        return False
    rule["$ref"] += "Copy"
    return True


def close_map(rule: Schema, random: Random) -> bool:
    """A map of fewer values, or none."""
    if rule.get("additionalProperties", False) is False:
        return False
    rule["additionalProperties"] = random.choice([True, False, {"type": "integer"}])
    return True


def restrict_text(rule: Schema, random: Random) -> bool:
    """A pattern or a format that was not there, or none."""
    if rule.get("type") != "string":
        return False
    if rule.pop("pattern", None) is None or random.random() < 0.5:
        rule["pattern"] = random.choice(["^[a-z]*$", ".*", "x"])
    return True


MUTATIONS: dict[Mutation, set[bool]] = {
    drop_value: {False},
    add_value: {True},
    change_type: {True, False},
    add_bound: {True, False},
    drop_alternative: {False},
    shuffle_alternatives: {True},
    allow_null: {True},
    require_field: {True, False},
    add_optional: {True},
    rename_part: {True},
    close_map: {True, False},
    restrict_text: {True, False},
}
"""Mutation -> whether what it makes is compatible: always, never, or by what it meets."""


def rules_of(node: object) -> Iterator[Schema]:
    """Every schema in a document, the document first."""
    if isinstance(node, list):
        for item in node:
            yield from rules_of(item)
    elif isinstance(node, dict):
        if not isinstance(node.get("properties"), dict) or "type" in node:
            yield node
        for name, child in node.items():
            if name in {"properties", "$defs"}:
                for part in child.values():
                    yield from rules_of(part)
            elif name in {"anyOf", "oneOf", "items", "prefixItems", "additionalProperties"}:
                yield from rules_of(child)


def edited(schema: Schema, mutation: Mutation, random: Random) -> Schema | None:
    """A copy with one rule changed; None where no rule can be."""
    new = copy.deepcopy(schema)
    rules = list(rules_of(new))
    random.shuffle(rules)
    copies = {f"{name}Copy": part for name, part in new.get("$defs", {}).items()}
    if not any(mutation(rule, random) for rule in rules):
        return None
    if copies:
        new["$defs"] |= copies
    return new


def as_readers_do(schema: Schema) -> Schema:
    """Without the refusal of fields that the schema does not know: readers ignore them."""
    opened = copy.deepcopy(schema)
    for rule in rules_of(opened):
        if rule.get("additionalProperties") is False and "properties" in rule:
            del rule["additionalProperties"]
    return opened


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_what_is_called_compatible_reads_every_event_of_before(mutation: Mutation) -> None:
    random = Random(mutation.__name__)
    outcomes, tries = set(), 0
    while tries < NUM_TRIES:
        type_, version = random.choice(FILES)
        old = read_schema(type_, version)
        new = edited(old, mutation, random)
        if new is None:
            continue
        tries += 1
        found = incompatibilities(old, new)
        outcomes.add(found == [])
        if found:
            continue
        validator = Draft202012Validator(as_readers_do(new))
        for _ in range(NUM_EVENTS):
            event = json.loads(json.dumps(draw(old, random)))
            assert [iter_error.message for iter_error in validator.iter_errors(event)] == [], (
                type_,
                version,
            )
    assert outcomes == MUTATIONS[mutation]

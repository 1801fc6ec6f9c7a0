"""Newer code reads every event that any older version of its type allowed (BACKWARD_TRANSITIVE).

A schema file per type and version, for ever. A change of a payload class that old events do not
survive fails here, with the reason, until its VERSION is raised and an upcaster brings the old
events along.
"""

import json
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker
from pydantic import JsonValue

from schemas.base import Payload
from schemas.catalogue import BY_TYPE, PAYLOADS
from schemas.json_schemas import JsonSchema, read_schema, schema_path, schema_versions
from schemas.upcasting import upcast
from schemas.wire import SCHEMA_PREFIX
from tests.reference_fold.histories import history
from tests.support.paths import GOLDEN_EVENTS, ROOT
from tests.support.schema_compatibility import incompatibilities
from tests.support.schema_files import render, text
from tests.support.schema_values import draw

WRITTEN = [(type_, version) for type_, all_ in schema_versions().items() for version in all_]
RELEASES = sorted((ROOT / "tests" / "data").glob("release_*/schemas.json"))
"""What each release wrote; a release adds its own file and no file changes."""


class Released(NamedTuple):
    """A schema as a release had it."""

    release: str
    type: str
    version: int
    schema: JsonSchema


def released() -> list[Released]:
    found = []
    for path in RELEASES:
        for name, schema in json.loads(path.read_text()).items():
            type_, _, version = name.rpartition(":")
            found.append(Released(path.parent.name, type_, int(version), schema))
    return found


RELEASED = released()


def name_of(value: object) -> str:
    return str(value) if isinstance(value, str | int) else ""


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda payload: payload.TYPE)
def test_a_payload_class_reads_what_its_version_allowed_before(payload: type[Payload]) -> None:
    path = schema_path(payload.TYPE, payload.VERSION)
    assert path.exists(), "run `make docs`"
    found = incompatibilities(read_schema(payload.TYPE, payload.VERSION), render(payload))
    assert found == [], "raise VERSION and add an upcaster (schemas/upcasting.py)"


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda payload: payload.TYPE)
def test_the_schema_file_is_the_payload_class(payload: type[Payload]) -> None:
    path = schema_path(payload.TYPE, payload.VERSION)
    assert path.read_text(encoding="utf-8") == text(render(payload)), "run `make docs`"


def test_a_released_schema_is_kept_and_only_widened() -> None:
    for one in RELEASED:
        said = f"{one.release} wrote such events: {one.type} {one.version}"
        assert schema_path(one.type, one.version).exists(), said
        assert incompatibilities(one.schema, read_schema(one.type, one.version)) == [], said


def test_a_version_that_is_past_stays_as_its_release_had_it() -> None:
    past = {(type_, version) for type_, version in WRITTEN if (type_, version + 1) in WRITTEN}
    newest = {(item.type, item.version): item.schema for item in RELEASED}
    assert past == {("cua.rollout.turn_taken", 1)}
    # No class writes it any more: a wider file would describe events that nobody wrote.
    assert past <= newest.keys()
    assert [incompatibilities(read_schema(*item), newest[item]) for item in past] == [[]]


def test_every_version_ever_written_leads_to_a_class() -> None:
    newest = {(type_, upcast(type_, version, {})[0]) for type_, version in WRITTEN}
    assert newest <= BY_TYPE.keys(), "no class and no upcaster reads these events any more"


def test_every_type_has_all_its_versions_from_the_first() -> None:
    current = {payload.TYPE: payload.VERSION for payload in PAYLOADS}
    assert schema_versions() == {
        type_: tuple(range(1, version + 1)) for type_, version in current.items()
    }
    assert len(RELEASES) >= 1


def read_back(type_: str, version: int, data: dict[str, JsonValue]) -> Payload:
    """As `schemas.wire.read_payload`, with pydantic's own error."""
    newest, lifted = upcast(type_, version, data)
    return BY_TYPE[type_, newest].model_validate(lifted, extra="ignore")


@pytest.mark.parametrize(("type_", "version"), WRITTEN, ids=name_of)
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32))
def test_whatever_a_schema_allows_is_read(type_: str, version: int, seed: int) -> None:
    data = draw(read_schema(type_, version), Random(seed))
    again = read_back(type_, version, json.loads(json.dumps(data)))
    for name, value in data.items():
        if not isinstance(value, dict | list | str | float):
            assert getattr(again, name) == value


def errors(event: dict[str, Any]) -> list[str]:
    type_, _, version = event["dataschema"].removeprefix(SCHEMA_PREFIX).rpartition(":")
    validator = Draft202012Validator(
        read_schema(type_, int(version)), format_checker=FormatChecker()
    )
    return [
        f"{type_} {iter_error.json_path}: {iter_error.message}"
        for iter_error in validator.iter_errors(event["data"])
    ]


@pytest.mark.parametrize(("type_", "version"), WRITTEN, ids=name_of)
def test_a_schema_is_valid_and_describes_its_golden_event(type_: str, version: int) -> None:
    schema = read_schema(type_, version)
    Draft202012Validator.check_schema(schema)
    event = json.loads((GOLDEN_EVENTS / f"{type_}.v{version}.json").read_text())
    assert event["dataschema"] == schema["$id"]
    assert errors(event) == []
    assert errors(event | {"data": event["data"] | {"unknown": 1}}) != []


def test_the_schemas_describe_what_a_training_writes() -> None:
    said = [json.loads(event.value) for seed in range(3) for event in history(f"run-{seed}", seed)]
    assert [line for event in said for line in errors(event)] == []


def test_every_field_says_what_it_means() -> None:
    parts: dict[str, Any] = {}
    for payload in PAYLOADS:
        schema: dict[str, Any] = render(payload)
        parts |= {payload.__name__: schema} | schema.get("$defs", {})
    missing = [
        f"{name}.{field}"
        for name, part in parts.items()
        for field, rule in part.get("properties", {}).items()
        if "description" not in rule and not (field == "type" and "const" in rule)
    ]
    assert missing == []

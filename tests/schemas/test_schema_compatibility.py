"""What may change in a payload within its version, and what may not: by table, and on classes."""

import re
import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import Field, JsonValue, create_model

from schemas.base import Payload, Value
from schemas.group import GroupDropped
from schemas.json_schemas import FOLDER, read_schema
from schemas.rollout import RolloutFinished
from schemas.step import Sample, SamplesChosen, StepProgressed
from schemas.turn import TurnTaken
from tests.support.schema_compatibility import incompatibilities
from tests.support.schema_files import render, write_all

Schema = dict[str, Any]
NULL: Schema = {"type": "null"}
TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
REAL: Schema = {"type": "number"}


def either(*choices: Schema) -> Schema:
    return {"anyOf": list(choices)}


def tagged(tag: str, **fields: Schema) -> Schema:
    properties = {"type": {"const": tag, "type": "string"}, **fields}
    return {"type": "object", "properties": properties, "required": ["type", *fields]}


ALLOWED: dict[str, tuple[Schema, Schema]] = {
    "nothing": (TEXT, TEXT),
    "other docs": (TEXT | {"description": "a"}, TEXT | {"description": "b", "title": "c"}),
    "an integer may be any number": (WHOLE, REAL),
    "it may be null": (TEXT, either(TEXT, NULL)),
    "another type may be there": (either(TEXT, NULL), either(WHOLE, TEXT, NULL)),
    "another order of types": (either(TEXT, NULL), either(NULL, TEXT)),
    "another value": (TEXT | {"enum": ["a"]}, TEXT | {"enum": ["b", "a"]}),
    "one value becomes several": (TEXT | {"const": "a"}, TEXT | {"enum": ["a", "b"]}),
    "any value instead of some": (TEXT | {"enum": ["a"]}, TEXT),
    "wider bounds": (
        WHOLE | {"minimum": 1, "maximum": 5},
        WHOLE | {"minimum": 0, "maximum": 6},
    ),
    "an exclusive bound that lets its value through": (
        REAL | {"exclusiveMinimum": 0, "exclusiveMaximum": 1},
        REAL | {"minimum": 0, "maximum": 1},
    ),
    "a wider bound that is exclusive": (
        REAL | {"minimum": 0, "maximum": 1},
        REAL | {"exclusiveMinimum": -0.5, "exclusiveMaximum": 1.5},
    ),
    "the same integers above an exclusive bound": (
        WHOLE | {"minimum": 1, "maximum": 4},
        WHOLE | {"exclusiveMinimum": 0, "exclusiveMaximum": 5},
    ),
    "the same integers from an inclusive bound on": (
        WHOLE | {"exclusiveMinimum": 0, "exclusiveMaximum": 5},
        WHOLE | {"minimum": 1, "maximum": 4},
    ),
    "any number, any items": (
        {"type": "array", "uniqueItems": True, "items": WHOLE | {"multipleOf": 4}},
        {"type": "array", "items": WHOLE},
    ),
    "a pair becomes a list": (
        {"type": "array", "prefixItems": [WHOLE, REAL], "minItems": 2, "maxItems": 2},
        {"type": "array", "items": REAL},
    ),
    "no bounds": (WHOLE | {"minimum": 0, "exclusiveMaximum": 2}, WHOLE),
    "no format, no pattern": (TEXT | {"format": "uuid", "pattern": "x"}, TEXT),
    "shorter lists": ({"type": "array", "minItems": 2}, {"type": "array", "minItems": 1}),
    "anything": (tagged("a"), {}),
    "another member of a union": (
        either(tagged("a")),
        {"oneOf": [tagged("a"), tagged("b")], "discriminator": {"propertyName": "type"}},
    ),
}
REFUSED: dict[str, tuple[Schema, Schema, str]] = {
    "another type": (TEXT, WHOLE, "string was allowed, now only integer"),
    "any number becomes an integer": (REAL, WHOLE, "number was allowed, now only integer"),
    "not null any more": (either(TEXT, NULL), TEXT, "null is not allowed any more"),
    "a value less": (TEXT | {"enum": ["a", "b"]}, TEXT | {"enum": ["a"]}, r"\['b'\] is not"),
    "a renamed value": (TEXT | {"enum": ["a"]}, TEXT | {"enum": ["A"]}, r"\['a'\] is not"),
    "only some values": (TEXT, TEXT | {"enum": ["a"]}, "string was allowed, now only"),
    "a higher minimum": (WHOLE | {"minimum": 0}, WHOLE | {"minimum": 1}, "minimum was 0, now 1"),
    "a new minimum": (WHOLE, WHOLE | {"minimum": 0}, "minimum was None, now 0"),
    "an exclusive bound instead": (
        WHOLE | {"minimum": 0},
        WHOLE | {"exclusiveMinimum": 0},
        "exclusiveMinimum was None",
    ),
    "an exclusive maximum instead": (
        REAL | {"maximum": 1},
        REAL | {"exclusiveMaximum": 1},
        "exclusiveMaximum was None, now 1",
    ),
    "one integer less": (
        WHOLE | {"exclusiveMinimum": 0},
        WHOLE | {"minimum": 2},
        "minimum was None, now 2",
    ),
    "no infinity any more": (
        either(REAL, {"enum": ["NaN", "Infinity"]}),
        REAL,
        r"\['NaN', 'Infinity'\] is not allowed any more",
    ),
    "text where only a number is read": (
        {"enum": ["NaN"]},
        REAL,
        r"\['NaN'\] was allowed, now only number",
    ),
    "true instead of one": ({"enum": [1, 2]}, {"enum": [True, 2]}, r"\[1\] is not allowed"),
    "a lower maximum": (WHOLE | {"maximum": 9}, WHOLE | {"maximum": 8}, "maximum was 9, now 8"),
    "a new maximum": (WHOLE, WHOLE | {"maximum": 8}, "maximum was None, now 8"),
    "shorter text": (TEXT, TEXT | {"maxLength": 8}, "maxLength was None"),
    "more items": ({"type": "array"}, {"type": "array", "minItems": 1}, "minItems was None"),
    "another pattern": (TEXT | {"pattern": "a"}, TEXT | {"pattern": "b"}, "pattern was 'a'"),
    "a new pattern": (TEXT, TEXT | {"pattern": "b"}, "pattern was None"),
    "a new format": (TEXT, TEXT | {"format": "uuid"}, "format was None"),
    "other numbers in an array's text": (
        TEXT | {"dtype": "<i4"},
        TEXT | {"dtype": "<i8"},
        "dtype was '<i4'",
    ),
    "other items": (
        {"type": "array", "items": TEXT},
        {"type": "array", "items": WHOLE},
        r"\[\]: string was allowed",
    ),
    "a list becomes a pair": (
        {"type": "array", "items": WHOLE},
        {"type": "array", "prefixItems": [WHOLE, WHOLE]},
        "had 0 places, now 2",
    ),
    "a pair becomes a list of something else": (
        {"type": "array", "prefixItems": [WHOLE, TEXT], "minItems": 2, "maxItems": 2},
        {"type": "array", "items": WHOLE},
        r"\[1\]: string was allowed",
    ),
    "a place more": (
        {"type": "array", "prefixItems": [TEXT]},
        {"type": "array", "prefixItems": [TEXT, TEXT]},
        "had 1 places, now 2",
    ),
    "something instead of anything": ({}, TEXT, "any value was allowed"),
    "other values of a map": (
        {"type": "object", "additionalProperties": True},
        {"type": "object", "additionalProperties": TEXT},
        "any value was allowed",
    ),
    "a closed map": (
        {"type": "object", "additionalProperties": TEXT},
        {"type": "object", "additionalProperties": False},
        "other fields were allowed",
    ),
    "a member less in a union": (
        {"oneOf": [tagged("a"), tagged("b")]},
        {"oneOf": [tagged("a"), tagged("c")]},
        "is not allowed any more",
    ),
    "a field more in a member of a union": (
        {"oneOf": [tagged("a"), tagged("b")]},
        {"oneOf": [tagged("a", x=WHOLE), tagged("b")]},
        "x: a new field must be optional",
    ),
    "another effect on the status": (
        {"type": "object", "x-status": "failed"},
        {"type": "object", "x-status": "completed"},
        "x-status was 'failed'",
    ),
    "a keyword that is not known here": (TEXT, TEXT | {"not": {"const": "a"}}, "not was None"),
}


@pytest.mark.parametrize("change", ALLOWED)
def test_a_change_that_old_events_survive_is_allowed(change: str) -> None:
    old, new = ALLOWED[change]
    assert incompatibilities(old, new) == []
    assert incompatibilities(_in_a_field(old), _in_a_field(new)) == []


@pytest.mark.parametrize("change", REFUSED)
def test_a_change_that_old_events_do_not_survive_is_named(change: str) -> None:
    old, new, reason = REFUSED[change]
    for before, after in ((old, new), (_in_a_field(old), _in_a_field(new))):
        found = incompatibilities(before, after)
        assert len(found) == 1
        assert re.search(reason, found[0]), found


def _in_a_field(schema: Schema) -> Schema:
    """The schema as that of a field of a definition that a payload refers to."""
    part = {"type": "object", "properties": {"field": schema}, "required": ["field"]}
    return {
        "type": "object",
        "properties": {"part": {"$ref": "#/$defs/Part"}},
        "required": ["part"],
        "$defs": {"Part": part},
    }


def test_a_definition_that_contains_itself_ends() -> None:
    node: Schema = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    tree: Schema = {"$ref": "#/$defs/Node", "$defs": {"Node": node}}
    narrower = {"$ref": "#/$defs/Node", "$defs": {"Node": node | {"required": ["next"]}}}
    assert incompatibilities(tree, tree) == []
    assert incompatibilities(tree, narrower) == ["next: required now; old events may lack it"]


def test_a_definition_that_contains_itself_is_compared_with_each_level_of_an_inline_one() -> None:
    node: Schema = {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/Node"}, "value": WHOLE},
    }
    old: Schema = {"$ref": "#/$defs/Node", "$defs": {"Node": node}}
    inner: Schema = {"type": "object", "properties": {"next": {}, "value": TEXT}}
    new: Schema = {"type": "object", "properties": {"next": inner, "value": WHOLE}}
    assert incompatibilities(old, new) == ["next.value: integer was allowed, now only string"]


def changed(payload: type[Payload], **fields: Any) -> type[Payload]:
    """The same class with fields added or replaced."""
    made: type[Payload] = create_model(payload.__name__, __base__=payload, **fields)
    made.__module__, made.__doc__ = payload.__module__, payload.__doc__
    return made


def without(payload: type[Payload], name: str, **others: Any) -> type[Payload]:
    """The same class without a field."""
    fields: dict[str, Any] = {
        field: (info.annotation, info)
        for field, info in payload.model_fields.items()
        if field != name
    }
    made: type[Payload] = create_model(payload.__name__, __base__=Payload, **fields, **others)
    made.TYPE, made.VERSION, made.ENTITY = payload.TYPE, payload.VERSION, payload.ENTITY
    made.STATUS, made.__module__, made.__doc__ = payload.STATUS, payload.__module__, payload.__doc__
    return made


class RoundedSample(Sample):
    """Its advantage is a whole number."""

    advantage: int | None


Finite = Annotated[float, Field(allow_inf_nan=False)]


class NarrowPart(Value):
    """Another shape of a part."""

    percent: Annotated[float, Field(ge=0, le=1)]


class FinishedStep(StepProgressed):
    """The same fact with another effect."""

    STATUS: ClassVar[str | None] = "completed"


CLASSES_REFUSED: dict[str, tuple[Callable[[], type[Payload]], str]] = {
    "a new required field": (
        lambda: changed(GroupDropped, note=(str, ...)),
        "note: a new field must be optional",
    ),
    "a removed field": (lambda: without(GroupDropped, "reason"), "reason: the field is gone"),
    "a renamed field": (
        lambda: without(GroupDropped, "reason", why=(str | None, None)),
        "reason: the field is gone",
    ),
    "a removed value": (
        lambda: changed(GroupDropped, reason=(Literal["zero_variance", "stale"], ...)),
        "['too_few_rollouts'] is not allowed any more",
    ),
    "a field that may not be null any more": (
        lambda: changed(TurnTaken, text=(str, ...)),
        "text: null is not allowed any more",
    ),
    "an optional field that is required": (
        lambda: changed(TurnTaken, metrics=(dict[str, JsonValue], ...)),
        "metrics: required now",
    ),
    "another default": (
        lambda: changed(TurnTaken, metrics=(dict[str, JsonValue], {"sample_s": 0.0})),
        "metrics: an event without it means",
    ),
    "a narrower part": (
        lambda: changed(StepProgressed, progress=(NarrowPart, ...)),
        "progress.percent: maximum was 100, now 1",
    ),
    "a narrower item of a list": (
        lambda: changed(SamplesChosen, samples=(tuple[RoundedSample, ...], ...)),
        "samples[].advantage: number is not allowed any more",
    ),
    "a time instead of text": (
        lambda: changed(TurnTaken, model_response=(datetime, ...)),
        "model_response: format was None, now 'date-time'",
    ),
    "no infinity any more": (
        lambda: changed(RolloutFinished, reward=(Finite, ...)),
        "reward: ['NaN', 'Infinity', '-Infinity'] is not allowed any more",
    ),
    "another effect on the status": (lambda: FinishedStep, "x-status was None"),
}


@pytest.mark.parametrize("change", CLASSES_REFUSED)
def test_a_payload_class_that_breaks_old_events_gets_no_file(change: str, tmp_path: Path) -> None:
    make, reason = CLASSES_REFUSED[change]
    folder = Path(shutil.copytree(FOLDER, tmp_path / "json"))
    payload = make()
    before = read_schema(payload.TYPE, payload.VERSION, folder)

    refused = write_all((payload,), folder)

    assert [line for line in refused if reason in line], refused
    assert read_schema(payload.TYPE, payload.VERSION, folder) == before


def test_an_optional_field_is_written_to_the_version_s_file(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FOLDER, tmp_path / "json"))
    payload = changed(GroupDropped, note=(str | None, None))

    assert write_all((payload,), folder) == []

    assert read_schema(payload.TYPE, 1, folder) != read_schema(payload.TYPE, 1)
    # From now on that field is there for ever.
    assert any("note: the field is gone" in line for line in write_all((GroupDropped,), folder))


def test_another_default_that_a_factory_makes_is_refused(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FOLDER, tmp_path / "json"))
    first, other = (
        changed(GroupDropped, notes=(tuple[str, ...], Field(default_factory=make)))
        for make in (lambda: ("a",), lambda: ("b",))
    )
    assert write_all((first,), folder) == []
    written = read_schema(first.TYPE, 1, folder)

    assert write_all((other,), folder) == [
        "cua.group.dropped version 1: notes: an event without it means ['b'] now, not ['a']"
    ]
    assert read_schema(first.TYPE, 1, folder) == written


def test_a_raised_version_leaves_the_older_file_alone(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FOLDER, tmp_path / "json"))
    payload = without(GroupDropped, "reason", why=(str, ...))
    payload.VERSION = 2

    assert write_all((payload,), folder) == []

    assert read_schema(payload.TYPE, 1, folder) == read_schema(payload.TYPE, 1)
    assert read_schema(payload.TYPE, 2, folder)["$id"] == "urn:cua:cua.group.dropped:2"


def test_rendering_says_what_the_event_does_to_a_status() -> None:
    assert {
        name: render(StepProgressed).get(name) for name in ("x-entity", "x-status", "x-creates")
    } == {"x-entity": "step", "x-status": None, "x-creates": None}

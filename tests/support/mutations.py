"""Recorded events, changed at random: bytes, types, magnitudes, unicode, depth, keys.

A seed decides everything. What comes out may be an event, JSON that is none, or no JSON at all.
"""

import json
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

from schemas.entry import EntryContent, entry_hash
from schemas.ids import entry_row_id

RAW = {
    "@nan@": "NaN",
    "@infinity@": "-Infinity",
    "@overflow@": "1e400",
    "@4000@": "9" * 4_000,
    "@digits@": "9" * 5_000,
    "@fraction@": "0." + "3" * 20_000,
    "@exponent@": "1e999999999999",
    "@surrogate@": '"\\ud800"',
    "@turned@": '"\\udc00\\ud800"',
    "@deep@": "[" * 150 + "]" * 150,
    "@deeper@": '{"a":' * 1_000 + "1" + "}" * 1_000,
    "@twice@": '{"a":1,"a":2}',
}
"""JSON that json.dumps would not write."""

NUMBERS = [
    0, -1, 1, 2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 10**40, -(10**300),
    0.5, -0.0, 1e308, 5e-324, "@nan@", "@infinity@", "@overflow@", "@digits@", "@fraction@",
    "@exponent@",
]  # fmt: skip
TEXTS = [
    "", " ", "\x00", "a\x00b", "\x1f\x7f\x85", "\ufffe\uffff", "😀" * 50, "é" * 3_000, "\u202eabc",
    "\\N", "\\.", "\t\n\r", "'; DROP TABLE training; --", "%s%(x)s{}", "x" * 30_000,
    "<script>alert(1)</script>", "@surrogate@", "@turned@", "NaN", "Infinity", "07",
    "\u0663",
]  # fmt: skip
NOISE = "".join(map(chr, Random(1).choices(range(0x20, 0xD000), k=2_000)))
"""Text that no compression makes short enough for an index."""
TIMES = [
    "0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999-14:00",
    "9999-12-31T23:59:59.999999Z", "2026-01-01", "2026-01-01T00:00:00", "2026-02-30T00:00:00Z",
    "24:00", "2026-W01-1T00:00:00Z", "1900-01-01T00:00:00+00:00:01", -62135596800, 253402300799,
    10**18, "@nan@",
]  # fmt: skip
INTEGERS = [0, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 10**40, 10**400, "@4000@", "@digits@"]
TEXT_FIELDS = {
    "run_name", "name", "description", "model_path", "model_name", "error_message", "reason",
    "status_message", "text", "model_response", "tool_name", "validation_query", "gbox_id", "path",
    "expected_result", "actual_result", "task_id", "rollout_id", "category", "definition_hash",
    "current_phase", "error_type", "env_type", "box_type", "log_path", "adapter_sha256",
    "validator_type", "validation_method", "source_type", "sql", "answer", "instruction",
    "evidence", "entry_id", "scorer", "skill", "trained_skill", "database", "difficulty",
    "answer_md5", "table_hash",
}  # fmt: skip
"""Fields that take any text."""
NAMES = [
    "training/00000000-0000-0000-0000-00000000000A",
    "training/{00000000-0000-0000-0000-00000000000a}",
    "training/urn:uuid:00000000-0000-0000-0000-00000000000a",
    "Training/00000000-0000-0000-0000-00000000000a",
    "training/0000000000000000000000000000000a",
    "training/\u06600000000-0000-0000-0000-00000000000a",
    "rollout/", "/", "dream/1", "rollout/" + "a" * 5_000, "00000000-0000-0000-0000-00000000000A",
    "00000000000000000000000000000000", "urn:cua:cua.step.created:99999999999999999999",
    "urn:cua:x:-1", "1/1", "2/999999999999999999999", "-1/-1", "1/1/1",
]  # fmt: skip
OTHERS: list[Any] = [None, True, False, [], {}, [[]], [None], {"": None}, {"\x00": "\x00"}]
OTHERS += ["@deep@", "@deeper@", "@twice@"]
ODD: list[Any] = [*NUMBERS, *TEXTS, *TIMES, *NAMES, *OTHERS]


class Mutated(NamedTuple):
    """A record that takes another's place."""

    key: str | None
    value: bytes
    what: str
    """How it was changed, for a test that fails."""


def mutate(subject: str, value: bytes, random: Random) -> Mutated:
    """Change a record's value, now and then its key, sometimes twice over."""
    names = []
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        change = random.choice(CHANGES)
        try:
            value = change(value, random)
        except (ValueError, RecursionError, IndexError):
            # An earlier change left no JSON, or a number too long for Python.
            value = _bytes(value, random)
        names.append(change.__name__.strip("_"))
    if b'"cua.entry.stated"' in value and random.random() < 0.7:
        value = _told_honestly(value)
    key = (
        random.choice([None, "", "\x00", "x" * 5_000, *NAMES]) if random.random() < 0.1 else subject
    )
    return Mutated(
        key, value, " then ".join(names) + ("" if key == subject else f", key {key!r:.40}")
    )


def _told_honestly(value: bytes) -> bytes:
    """An entry of other content with that content's hash and id, so that rows are made of it."""
    try:
        event = json.loads(value)
        data = event["data"]
        data["content_hash"] = entry_hash(EntryContent.model_validate(data["content"]))
        data["id"] = str(entry_row_id(UUID(data["task_id"]), data["content_hash"]))
        return _dumped(event)
    except (ValueError, TypeError, KeyError, RecursionError, AttributeError):
        return value


def _bytes(value: bytes, random: Random) -> bytes:
    """Bytes flipped, cut, repeated or inserted; no JSON any more, or another."""
    start = random.randrange(len(value) + 1)
    end = min(len(value), start + random.randrange(1, 30))
    noise = random.choice(
        [b"", b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b'"', b"}", b"9" * 400, b"\\"]
    )
    match random.randrange(4):
        case 0:
            return value[:start] + noise + value[end:]
        case 1:
            return (
                value[:start] + bytes(random.randrange(256) for _ in value[start:end]) + value[end:]
            )
        case 2:
            return value[:start] + value[start:end] * random.randrange(2, 5) + value[end:]
        case _:
            return random.choice(
                [b"", value[:start], value[start:], noise, value * 2, b"null", b"[]"]
            )


def _places(document: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a document."""
    found: list[tuple[Any, Any]] = []
    stack = [document]
    while stack:
        one = stack.pop()
        keys = list(one) if isinstance(one, dict) else range(len(one))
        for key in keys:
            found.append((one, key))
            if isinstance(one[key], dict | list):
                stack.append(one[key])
    return found


def _edit(value: bytes, random: Random, edit: Callable[[Any, Any, Random], None]) -> bytes:
    event = json.loads(value)
    if not isinstance(event, dict) or not event:
        message = "nothing to edit"
        raise ValueError(message)
    places = _places(event)
    inside = [place for place in places if place[0] is not event]
    edit(*random.choice(inside if inside and random.random() < 0.7 else places), random)
    return _dumped(event)


def _dumped(event: Any) -> bytes:
    text = json.dumps(event)
    if '"@' in text:
        for name, raw in RAW.items():
            text = text.replace(f'"{name}"', raw)
    return text.encode()


def _replace_by_odd(value: bytes, random: Random) -> bytes:
    """Any value in the place of another."""

    def edit(container: Any, key: Any, random: Random) -> None:
        container[key] = random.choice(ODD)

    return _edit(value, random, edit)


def _replace_by_like(value: bytes, random: Random) -> bytes:
    """A value of the same type, but of an odd magnitude, script or time."""

    def edit(container: Any, key: Any, random: Random) -> None:
        match container[key]:
            case bool():
                container[key] = not container[key]
            case int() | float():
                container[key] = random.choice(NUMBERS)
            case str() as text:
                is_time = text[4:5] == "-" and text[10:11] == "T"
                container[key] = random.choice(TIMES if is_time else [*TEXTS, *NAMES, text.upper()])
            case _:
                container[key] = random.choice(OTHERS)

    return _edit(value, random, edit)


def _remove(value: bytes, random: Random) -> bytes:
    """A field less."""

    def edit(container: Any, key: Any, _random: Random) -> None:
        del container[key]

    return _edit(value, random, edit)


def _add(value: bytes, random: Random) -> bytes:
    """A field more, perhaps of an odd name."""

    def edit(container: Any, _key: Any, random: Random) -> None:
        if isinstance(container, dict):
            container[random.choice(["new", "", "\x00", "x" * 3_000, "id", "😀"])] = random.choice(
                ODD
            )
        else:
            container.append(random.choice(ODD))

    return _edit(value, random, edit)


def _deepen(value: bytes, random: Random) -> bytes:
    """A value inside of many lists or objects."""

    def edit(container: Any, key: Any, random: Random) -> None:
        for _ in range(random.choice([1, 10, 60, 190])):
            container[key] = random.choice([[container[key]], {"a": container[key]}])

    return _edit(value, random, edit)


def _swap(value: bytes, random: Random) -> bytes:
    """Two values in each other's place."""
    event = json.loads(value)
    if not isinstance(event, dict) or not event:
        message = "nothing to edit"
        raise ValueError(message)
    places = [place for place in _places(event) if not isinstance(place[0][place[1]], dict | list)]
    (one, key), (other, other_key) = random.choice(places), random.choice(places)
    one[key], other[other_key] = other[other_key], one[key]
    return json.dumps(event).encode()


def _stretch(value: bytes, random: Random) -> bytes:
    """What the schema allows, and columns or indexes may not: large, long, odd, deep."""
    event = json.loads(value)
    data = event.get("data") if isinstance(event, dict) else None
    places = _places(data) if isinstance(data, dict) else []
    loose = [
        (container, key)
        for container, key in places
        if key in TEXT_FIELDS or isinstance(container[key], int | float | dict)
    ]
    if not loose:
        return _replace_by_like(value, random)
    for container, key in random.sample(loose, min(len(loose), random.choice([1, 1, 2, 4]))):
        match container[key]:
            case bool():
                container[key] = not container[key]
            case int():
                container[key] = random.choice(INTEGERS)
            case float():
                container[key] = random.choice([1e308, 5e-324, "@overflow@", "NaN", "-Infinity"])
            case dict() as document:
                document[random.choice(["", "\x00", "é", "x" * 9_000])] = random.choice(
                    [*NUMBERS, *TEXTS[:-8], *OTHERS[:-3], *INTEGERS, "@deep@"]
                )
            case _:
                container[key] = random.choice([*TEXTS[:14], NOISE])
    return _dumped(event)


CHANGES = (
    _bytes, _replace_by_odd, _replace_by_odd, _replace_by_like, _replace_by_like, _stretch,
    _stretch, _stretch, _stretch, _remove, _add, _deepen, _swap,
)  # fmt: skip

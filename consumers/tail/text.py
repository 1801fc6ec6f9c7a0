"""A record as one line for people.

Safe for a terminal whatever a policy generated; arrays are decoded and shortened, images omitted.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import get_args

from pydantic import JsonValue

from consumers.console import display_width, fit, sanitize
from consumers.tail.event_filter import DecodedRecord
from schemas.arrays import decode_float32, decode_int32
from schemas.base import Value
from schemas.catalogue import PAYLOADS

TEXT_CHARS = 80
JSON_CHARS = 120
ARRAY_HEAD = 6
WIDE_COLUMNS = 140
"""Terminals at least this wide get the date, milliseconds, aligned columns and whole stream ids."""
SHORT_ID_CHARS = 8
"""Enough of a UUID to tell streams apart; `--stream 'rollout/1a2b3c4d*'` finds it."""
RED, DIM, RESET = "\x1b[31m", "\x1b[2m", "\x1b[0m"
COLOURS = {
    "training": "\x1b[35m",
    "step": "\x1b[34m",
    "group": "\x1b[36m",
    "rollout": "\x1b[32m",
    "environment": "\x1b[33m",
}
"""By the first part of the type; failures are red."""


def format_line(decoded: DecodedRecord, *, colour: bool = False, width: int | None = None) -> str:
    """One line without its newline; cut to `width` terminal columns unless that is None."""
    parts = list(_parts_of(decoded, is_wide=width is None or width >= WIDE_COLUMNS))
    if not colour:
        text = " ".join(text for text, _ in parts).rstrip()
        return text if width is None else fit(text, width)
    coloured: list[str] = []
    left = width
    for text, tint in parts:
        fitted = text if left is None else fit(text, max(left, 0))
        coloured.append(f"{tint}{fitted}{RESET}" if tint else fitted)
        if left is not None:
            left -= display_width(text) + 1
            if left <= 0:
                break
    return " ".join(coloured).rstrip()


def _parts_of(decoded: DecodedRecord, *, is_wide: bool) -> Iterator[tuple[str, str]]:
    """(text, colour), to be joined by spaces. Narrow: without date, milliseconds and padding."""
    record, envelope = decoded.record, decoded.envelope
    time = record.appended_at if envelope is None else envelope.time
    clock = f"{time:%Y-%m-%d %H:%M:%S.%f}"[:-3] if is_wide else f"{time:%H:%M:%S}"
    if envelope is None:
        yield (
            (
                f"{clock}  UNREADABLE {record.topic}/{record.partition}@{record.offset}"
                f" key={sanitize(record.key or '-')} ({len(record.value)} bytes):"
                f" {sanitize(decoded.problem or '')}"
            ),
            RED,
        )
        return
    name = sanitize(envelope.type.removeprefix("cua."))
    kind, _, owner = sanitize(envelope.subject).partition("/")
    tint = (
        RED if name.endswith(("failed", "cancelled")) else COLOURS.get(name.partition(".")[0], "")
    )
    yield clock + (" " if is_wide else ""), DIM
    yield f"{name:<32}" if is_wide else name, tint
    owner = owner if is_wide else owner[:SHORT_ID_CHARS]
    yield f"{kind}/{owner} {envelope.point}" + (" " if is_wide else ""), DIM
    yield (
        " ".join(
            f"{sanitize(key)}={format_value(key, value)}"
            for key, value in envelope.data.items()
            if value not in (None, [], {})
        ),
        "",
    )


def format_value(key: str, value: JsonValue) -> str:
    """A field's value, shortened."""
    if isinstance(value, str):
        return _format_text(key, value)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        inner = ", ".join(
            f"{sanitize(name)}: {format_value(name, part)}"
            for name, part in value.items()
            if part not in (None, [], {})
        )
        return shorten(f"{{{inner}}}", JSON_CHARS * 3)
    if isinstance(value, list):
        head = ", ".join(format_value(key, part) for part in value[:ARRAY_HEAD])
        return shorten(f"[{head}{', …' if len(value) > ARRAY_HEAD else ''}]", JSON_CHARS * 2)
    return str(value)


def _format_text(key: str, value: str) -> str:
    if value.startswith("blob:sha256:"):
        return f"blob:{sanitize(value[12:20])}"
    decode = decoders().get(key)
    if decode is not None:
        return _format_array(decode, value)
    text = sanitize(shorten(value, TEXT_CHARS))
    return f'"{text}"' if " " in text or not text else text


def _format_array(dtype: str, value: str) -> str:
    try:
        numbers: list[int] | list[float] = (
            decode_int32(value) if dtype == "<i4" else decode_float32(value)
        )
    except ValueError:
        return "[not an array]"
    head = " ".join(
        f"{number:.4g}" if isinstance(number, float) else str(number)
        for number in numbers[:ARRAY_HEAD]
    )
    return f"[{len(numbers)}: {head}{' …' if len(numbers) > ARRAY_HEAD else ''}]"


def shorten(text: str, chars: int) -> str:
    """At most that many characters; a cut states how many are missing."""
    return text if len(text) <= chars else f"{text[:chars]}…(+{len(text) - chars})"


@cache
def decoders() -> dict[str, str]:
    """Field name -> dtype of every array in any payload, as the schemas declare them."""
    return dict(found for payload in PAYLOADS for found in _arrays(payload, set()))


def _arrays(owner: type[Value], visited: set[type[Value]]) -> Iterator[tuple[str, str]]:
    visited.add(owner)
    for name, field in owner.model_fields.items():
        if isinstance(field.json_schema_extra, dict) and "dtype" in field.json_schema_extra:
            yield name, str(field.json_schema_extra["dtype"])
        for part in _parts(field.annotation):
            if part not in visited:
                yield from _arrays(part, visited)


def _parts(annotation: object) -> Iterator[type[Value]]:
    if isinstance(annotation, type) and issubclass(annotation, Value):
        yield annotation
    for argument in get_args(annotation):
        yield from _parts(argument)

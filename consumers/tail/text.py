"""The human view of a record.

One line, safe for a terminal whatever a policy wrote, arrays decoded and shortened, images never
shown.
"""

import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from typing import get_args

from pydantic import JsonValue

from consumers.tail.selection import Seen
from schemas.arrays import decode_float32, decode_int32
from schemas.base import Value
from schemas.catalogue import PAYLOADS

TEXT_CHARS = 80
JSON_CHARS = 120
ARRAY_HEAD = 6
RED, DIM, RESET = "\x1b[31m", "\x1b[2m", "\x1b[0m"
COLOURS = {
    "training": "\x1b[35m",
    "step": "\x1b[34m",
    "group": "\x1b[36m",
    "rollout": "\x1b[32m",
    "environment": "\x1b[33m",
}
"""By the second part of the type; failures are red."""


def line(seen: Seen, *, colour: bool) -> str:
    """One line without its newline."""
    record, envelope = seen.record, seen.envelope
    if envelope is None:
        text = (
            f"{record.appended_at:%Y-%m-%d %H:%M:%S.%f}"[:-3]
            + f"  UNREADABLE {record.topic}/{record.partition}@{record.offset}"
        )
        text += (
            f" key={plain(record.key or '-')} ({len(record.value)} bytes):"
            f" {plain(seen.problem or '')}"
        )
        return f"{RED}{text}{RESET}" if colour else text
    name = plain(envelope.type.removeprefix("cua."))
    time = f"{envelope.time:%Y-%m-%d %H:%M:%S.%f}"[:-3]
    place = f"{plain(envelope.subject)} {envelope.point}"
    said = " ".join(
        f"{plain(key)}={show(key, value)}"
        for key, value in envelope.data.items()
        if value not in (None, [], {})
    )
    if not colour:
        return f"{time}  {name:<32} {place}  {said}".rstrip()
    tint = (
        RED if name.endswith(("failed", "cancelled")) else COLOURS.get(name.partition(".")[0], "")
    )
    return f"{DIM}{time}{RESET}  {tint}{name:<32}{RESET} {DIM}{place}{RESET}  {said}".rstrip()


def show(key: str, value: JsonValue) -> str:
    """A field's value, shortened."""
    if isinstance(value, str):
        return _show_text(key, value)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        inner = ", ".join(
            f"{plain(name)}: {show(name, part)}"
            for name, part in value.items()
            if part not in (None, [], {})
        )
        return shorten(f"{{{inner}}}", JSON_CHARS * 3)
    if isinstance(value, list):
        head = ", ".join(show(key, part) for part in value[:ARRAY_HEAD])
        return shorten(f"[{head}{', …' if len(value) > ARRAY_HEAD else ''}]", JSON_CHARS * 2)
    return str(value)


def _show_text(key: str, value: str) -> str:
    if value.startswith("blob:sha256:"):
        return f"blob:{plain(value[12:20])}"
    decode = decoders().get(key)
    if decode is not None:
        return _show_array(decode, value)
    text = plain(shorten(value, TEXT_CHARS))
    return f'"{text}"' if " " in text or not text else text


def _show_array(dtype: str, value: str) -> str:
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
    """At most that many characters, saying how many were left out."""
    return text if len(text) <= chars else f"{text[:chars]}…(+{len(text) - chars})"


def plain(text: str) -> str:
    """Without anything that a terminal could obey.

    Control, format (bidirectional overrides) and half characters become `\ufffd`.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        "\ufffd" if unicodedata.category(character)[0] == "C" else character for character in text
    )


@cache
def decoders() -> dict[str, str]:
    """Field name -> dtype of every array in any payload, as the schemas declare them."""
    return dict(found for payload in PAYLOADS for found in _arrays(payload, set()))


def _arrays(owner: type[Value], seen: set[type[Value]]) -> Iterator[tuple[str, str]]:
    seen.add(owner)
    for name, field in owner.model_fields.items():
        if isinstance(field.json_schema_extra, dict) and "dtype" in field.json_schema_extra:
            yield name, str(field.json_schema_extra["dtype"])
        for part in _parts(field.annotation):
            if part not in seen:
                yield from _arrays(part, seen)


def _parts(annotation: object) -> Iterator[type[Value]]:
    if isinstance(annotation, type) and issubclass(annotation, Value):
        yield annotation
    for argument in get_args(annotation):
        yield from _parts(argument)

"""Cuts text that may be of any length (a device's output, a traceback) before it is recorded.

An event has an upper size (`schemas.kafka_log.MAX_EVENT_BYTES`), and a run must not end because an
environment's error message has 20 MiB. A text that is cut ends with a mark.
"""

from itertools import islice

from pydantic import BaseModel, JsonValue

MAX_CHARS = 65_536
"""Of one text; screens of text for a person, and a few hundred of them fit into one event."""

MAX_DEPTH = 50
"""Of nested JSON. An event is read to a depth of 200 (`pydantic_core.from_json`), and written to
255; what is deeper than a person's arguments is recorded as a note."""
TOO_DEEP = f"… [cut: nested more than {MAX_DEPTH} deep]"


def storable(text: str) -> str:
    """The text as UTF-8 can hold it: half a surrogate pair becomes `?`."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def is_deeper(value: JsonValue, depth: int) -> bool:
    """Whether lists and objects are nested more than `depth` deep; any depth can be asked."""
    level: list[JsonValue] = [value]
    for _ in range(depth):
        level = [
            item
            for outer in level
            if isinstance(outer, list | dict)
            for item in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return any(isinstance(item, list | dict) for item in level)


def cut(text: str, max_chars: int = MAX_CHARS) -> str:
    """The text as it can be stored, or its beginning and a note of how much is missing."""
    if len(text) <= max_chars:
        return storable(text)
    return f"{storable(text[:max_chars])} … [cut: {len(text) - max_chars:,} more characters]"


def cut_optional(text: str | None, max_chars: int = MAX_CHARS) -> str | None:
    """As `cut`; None stays None."""
    return None if text is None else cut(text, max_chars)


def is_longer(value: object, max_chars: int) -> bool:
    """Whether the value's texts, and its numbers, are surely longer; reads no more than that.

    False only means that `str(value)` takes a few times `max_chars` at most.
    """
    left, waiting = max_chars, [value]
    while waiting and left >= 0:
        match waiting.pop():
            case str() as text:
                left -= len(text)
            case int() as number:
                left -= number.bit_length() // 4  # no more than its digits
            case dict() as fields:
                left -= len(fields)
                if left >= 0:
                    waiting += [*fields, *fields.values()]
            case BaseModel() as model:
                # Not of the model itself: dict() would call a field `keys`.
                waiting.append(dict(iter(model)))
            case list() | tuple() as items:
                left -= len(items)
                if left >= 0:
                    waiting += items
            case _:
                left -= 1
    return left < 0


def cut_json(value: JsonValue, max_chars: int = MAX_CHARS, max_depth: int = MAX_DEPTH) -> JsonValue:
    """The value with every text in it cut; longer than that as a whole: its text, cut.

    What is nested deeper than `max_depth` is a note.
    """
    match value:
        case str():
            return cut(value, max_chars)
        case list() | dict() if max_depth == 0:
            return TOO_DEEP
        case list() | dict() if len(value) > 2 * max_chars:
            # The text of so many is too long, whatever they are.
            some = value[:max_chars] if isinstance(value, list) else _first(value, max_chars)
            text = str(cut_json(some, max_chars, max_depth))[:max_chars]
            return f"{text} … [cut: {len(value):,} values]"
        case list():
            found: JsonValue = [cut_json(item, max_chars, max_depth - 1) for item in value]
        case dict():
            found = {
                cut(name, max_chars): cut_json(one, max_chars, max_depth - 1)
                for name, one in value.items()
            }
        case _:
            return value
    text = str(found)
    return found if len(text) <= 2 * max_chars else cut(text, max_chars)


def _first(values: dict[str, JsonValue], number: int) -> dict[str, JsonValue]:
    return dict(islice(values.items(), number))

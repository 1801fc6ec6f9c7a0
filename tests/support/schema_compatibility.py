"""Whether newer code reads everything that an older schema allowed, and reads it alike.

Compatible are: a new optional field, more values or types, wider bounds, other docs. Everything
else is named: a field that is new and required, gone, renamed or required now; a default that is
another one (an old event without the field would mean something else); a value, type, bound,
pattern or item that is refused now; a keyword that this module does not know and that changed.
"""

import json
from collections.abc import Iterator
from typing import Any

from pydantic import JsonValue

Schema = dict[str, Any]

DOCS = {"title", "description", "$id", "$schema", "$defs", "$comment", "examples", "discriminator"}
"""Keywords without a meaning for readers."""
LOWER = ("minimum", "exclusiveMinimum", "minItems", "minLength", "minProperties")
UPPER = ("maximum", "exclusiveMaximum", "maxItems", "maxLength", "maxProperties")
DROPPABLE = {"pattern", "format", "multipleOf", "uniqueItems"}
"""Keywords that only refuse: without one, more is allowed."""
STRUCTURE = {"$ref", "anyOf", "oneOf", "type", "enum", "const", "default"}
STRUCTURE |= {"properties", "required", "additionalProperties", "items", "prefixItems"}
ANYTHING: Schema = {}


def incompatibilities(old: Schema, new: Schema) -> list[str]:
    """What newer code would not read, or would read differently; a line each."""
    return list(_Comparison(old, new).compare(old, new, ""))


class _Comparison:
    """Of two documents; references are resolved in the one that has them."""

    def __init__(self, old: Schema, new: Schema) -> None:
        self._old, self._new = old, new
        self._under_way: set[tuple[str | int, str | int]] = set()

    def compare(self, old: Schema, new: Schema, at: str) -> Iterator[str]:
        """What of `old` is not accepted by `new`."""
        # A part that contains itself; an inline schema is told apart by its place in memory.
        pair = old.get("$ref", id(old)), new.get("$ref", id(new))
        if pair in self._under_way:
            return
        self._under_way.add(pair)
        yield from self._resolved_pair(_resolved(old, self._old), _resolved(new, self._new), at)
        self._under_way.discard(pair)

    def _resolved_pair(self, old: Schema, new: Schema, at: str) -> Iterator[str]:
        where = at or "the payload"
        if not _rules(new):
            return
        if not _rules(old):
            yield f"{where}: any value was allowed, now only {_short(new)}"
        elif "anyOf" in old or "oneOf" in old or "anyOf" in new or "oneOf" in new:
            yield from self._alternatives(old, new, at)
        else:
            yield from self._single(old, new, at)

    def _alternatives(self, old: Schema, new: Schema, at: str) -> Iterator[str]:
        """Each old alternative needs a new one that accepts it."""
        choices = _choices(new, self._new)
        for item in _choices(old, self._old):
            found = [list(self.compare(item, choice, at)) for choice in choices]
            if all(found):
                alike = [
                    lines
                    for lines, choice in zip(found, choices, strict=True)
                    if self._kind(item, self._old) == self._kind(choice, self._new)
                ]
                if len(alike) == 1:
                    yield from alike[0]
                else:
                    shown = _short(_resolved(item, self._old))
                    yield f"{at or 'the payload'}: {shown} is not allowed any more"

    def _kind(self, schema: Schema, document: Schema) -> object:
        """What makes two alternatives the same one: their tag, or their type."""
        resolved = _resolved(schema, document)
        tag = resolved.get("properties", {}).get("type", {}).get("const")
        return resolved.get("type"), tag

    def _single(self, old: Schema, new: Schema, at: str) -> Iterator[str]:
        where = at or "the payload"
        was, now = old.get("type"), new.get("type")
        is_wider = now is None or was == now or (was, now) == ("integer", "number")
        if not is_wider and was is None and (values := _values(old)) is not None:
            # An enum without a type, as of numbers that JSON has no number for.
            is_wider = all(_is_of(value, now) for value in values)
            was = was if is_wider else str(values)
        if not is_wider:
            yield f"{where}: {was or 'any type'} was allowed, now only {now}"
            return
        yield from _values_lost(old, new, where)
        yield from _bounds(old, new, where)
        if was == "object":
            yield from self._properties(old, new, at)
        if was == "array":
            yield from self._items(old, new, at)
        for keyword in sorted((old.keys() | new.keys()) - DOCS - STRUCTURE - {*LOWER, *UPPER}):
            before, after = old.get(keyword), new.get(keyword)
            is_dropped = after is None and keyword in DROPPABLE
            if before != after and not is_dropped:
                yield f"{where}: {keyword} was {before!r}, now {after!r}"

    def _properties(self, old: Schema, new: Schema, at: str) -> Iterator[str]:
        before, after = old.get("properties", {}), new.get("properties", {})
        must, must_now = set(old.get("required", ())), set(new.get("required", ()))
        for name, field in before.items():
            place = f"{at}.{name}" if at else name
            if name not in after:
                yield f"{place}: the field is gone; old events have it"
                continue
            if name in must_now and name not in must:
                yield f"{place}: required now; old events may lack it"
            elif name not in must and field.get("default") != after[name].get("default"):
                yield (
                    f"{place}: an event without it means {after[name].get('default')!r} now, not"
                    f" {field.get('default')!r}"
                )
            yield from self.compare(field, after[name], place)
        for name in after.keys() - before.keys():
            place = f"{at}.{name}" if at else name
            if name in must_now:
                yield f"{place}: a new field must be optional; old events lack it"
        others, others_now = (each.get("additionalProperties", True) for each in (old, new))
        if others is not False:
            if others_now is False:
                yield f"{at or 'the payload'}: other fields were allowed, now none"
            else:
                any_old, any_new = (
                    ANYTHING if each is True else each for each in (others, others_now)
                )
                yield from self.compare(any_old, any_new, f"{at}.*")

    def _items(self, old: Schema, new: Schema, at: str) -> Iterator[str]:
        before, after = old.get("prefixItems", []), new.get("prefixItems", [])
        if before and not after:
            # A list of any length, unless its bounds say otherwise.
            after = [new.get("items", ANYTHING)] * len(before)
        if len(before) != len(after):
            yield f"{at}: had {len(before)} places, now {len(after)}"
            return
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from self.compare(one, other, f"{at}[{index}]")
        if old.get("maxItems", len(before) + 1) > len(before):
            others = old.get("items", ANYTHING)
            yield from self.compare(others, new.get("items", ANYTHING), f"{at}[]")


def _resolved(schema: Schema, document: Schema) -> Schema:
    while "$ref" in schema:
        rest = {name: value for name, value in schema.items() if name != "$ref"}
        schema = document["$defs"][schema["$ref"].rpartition("/")[2]] | rest
    return schema


def _rules(schema: Schema) -> set[str]:
    return schema.keys() - DOCS - {"default"}


def _choices(schema: Schema, document: Schema) -> list[Schema]:
    """The alternatives, those of alternatives included."""
    resolved = _resolved(schema, document)
    found: list[Schema] | None = resolved.get("anyOf") or resolved.get("oneOf")
    if found is None:
        return [schema]
    return [choice for item in found for choice in _choices(item, document)]


def _values(schema: Schema) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    return schema.get("enum")


def _is_of(value: JsonValue, type_: object) -> bool:
    """Whether a value is of a JSON type; to Python true is a number."""
    kinds: dict[object, tuple[type, ...]] = {
        "string": (str,),
        "integer": (int,),
        "number": (int, float),
        "boolean": (bool,),
        "null": (type(None),),
    }
    return isinstance(value, kinds.get(type_, ())) and isinstance(value, bool) == (
        type_ == "boolean"
    )


def _values_lost(old: Schema, new: Schema, where: str) -> Iterator[str]:
    before, after = _values(old), _values(new)
    if after is None:
        return
    if before is None:
        yield f"{where}: {_short(old)} was allowed, now only {after}"
        return
    kept = {json.dumps(value) for value in after}
    if lost := [value for value in before if json.dumps(value) not in kept]:
        yield f"{where}: {lost} is not allowed any more"


def _bounds(old: Schema, new: Schema, where: str) -> Iterator[str]:
    for keyword in (*LOWER, *UPPER):
        if keyword in new and not any(
            _is_within(old, kind, new, keyword) for kind in _same_side(keyword)
        ):
            yield f"{where}: {keyword} was {old.get(keyword)}, now {new[keyword]}"


def _same_side(keyword: str) -> tuple[str, ...]:
    """The bounds that may imply this one: itself, and of a number the other kind too."""
    for pair in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if keyword in pair:
            return pair
    return (keyword,)


def _is_within(old: Schema, before: str, new: Schema, after: str) -> bool:
    """Whether everything that the old bound lets through is let through by the new one."""
    if before not in old:
        return False
    sign = 1 if after in LOWER else -1
    was, now = sign * old[before], sign * new[after]
    if old.get("type") == "integer":
        was += before.startswith("exclusive")
        now += after.startswith("exclusive")
        return bool(now <= was)
    is_closed = before.startswith("exclusive") or not after.startswith("exclusive")
    return bool(now < was or (now == was and is_closed))


def _short(schema: Schema) -> str:
    if (values := _values(schema)) is not None:
        return str(values)
    return str(schema.get("title") or schema.get("type") or schema)

"""Whether newer code reads everything that an older schema allowed, and reads it alike.

Compatible are: a new optional field, more values or types, wider bounds, other docs. Everything
else is named: a field that is new and required, gone, renamed or required now; a default that is
another one (an old event without the field would mean something else); a value, type, bound,
pattern or item that is refused now; a keyword that this module does not know and that changed.
"""

from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]

DOCS = {"title", "description", "$id", "$schema", "$defs", "$comment", "examples", "discriminator"}
"""Keywords without a meaning for readers."""
LOWER = ("minimum", "exclusiveMinimum", "minItems", "minLength", "minProperties")
UPPER = ("maximum", "exclusiveMaximum", "maxItems", "maxLength", "maxProperties")
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
        self._under_way: set[tuple[str, str]] = set()

    def compare(self, old: Schema, new: Schema, at: str) -> Iterator[str]:
        """What of `old` is not accepted by `new`."""
        names = str(old.get("$ref")), str(new.get("$ref"))
        if "$ref" in old and names in self._under_way:
            return
        self._under_way.add(names)
        old, new = _resolved(old, self._old), _resolved(new, self._new)
        where = at or "the payload"
        old_rules, new_rules = _rules(old), _rules(new)
        if not new_rules:
            return
        if not old_rules:
            yield f"{where}: any value was allowed, now only {_short(new)}"
        elif "anyOf" in old or "oneOf" in old or "anyOf" in new or "oneOf" in new:
            yield from self._alternatives(old, new, at)
        else:
            yield from self._single(old, new, at)
        self._under_way.discard(names)

    def _alternatives(self, old: Schema, new: Schema, at: str) -> Iterator[str]:
        """Each old alternative needs a new one that accepts it."""
        choices = _choices(new, self._new)
        for one in _choices(old, self._old):
            found = [list(self.compare(one, choice, at)) for choice in choices]
            if all(found):
                alike = [
                    lines
                    for lines, choice in zip(found, choices, strict=True)
                    if self._kind(one, self._old) == self._kind(choice, self._new)
                ]
                if len(alike) == 1:
                    yield from alike[0]
                else:
                    shown = _short(_resolved(one, self._old))
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
        if not is_wider and (was is not None or _values(old) is None):
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
            is_dropped = after is None and keyword in {"pattern", "format"}
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
        if len(before) != len(after):
            yield f"{at}: had {len(before)} places, now {len(after)}"
            return
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from self.compare(one, other, f"{at}[{index}]")
        yield from self.compare(old.get("items", ANYTHING), new.get("items", ANYTHING), f"{at}[]")


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
    return [choice for one in found for choice in _choices(one, document)]


def _values(schema: Schema) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    return schema.get("enum")


def _values_lost(old: Schema, new: Schema, where: str) -> Iterator[str]:
    before, after = _values(old), _values(new)
    if after is None:
        return
    if before is None:
        yield f"{where}: {_short(old)} was allowed, now only {after}"
    elif lost := [value for value in before if value not in after]:
        yield f"{where}: {lost} is not allowed any more"


def _bounds(old: Schema, new: Schema, where: str) -> Iterator[str]:
    for keyword in (*LOWER, *UPPER):
        before, after = old.get(keyword), new.get(keyword)
        if after is None or before == after:
            continue
        if before is None or (after > before if keyword in LOWER else after < before):
            yield f"{where}: {keyword} was {before}, now {after}"


def _short(schema: Schema) -> str:
    if (values := _values(schema)) is not None:
        return str(values)
    return str(schema.get("title") or schema.get("type") or schema)

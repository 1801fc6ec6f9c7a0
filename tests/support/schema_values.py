"""Draws documents from a JSON Schema: what any writer of that version may have put into an event.

Every value of an enum, every alternative, optional fields with and without, numbers near their
bounds and far away, any text. The seed decides.
"""

import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from struct import pack
from typing import Any
from uuid import UUID

Schema = dict[str, Any]

LARGEST = 2**31 - 1
"""Of a drawn integer: what a column of the tables holds."""
LETTERS = "abcXYZ 019_-./äßπ漢😀\t\n\"'\\{}[]:,\x00"
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
DEPTH = 3
"""Of a drawn JSON value."""


def draw(schema: Schema, random: Random, document: Schema | None = None) -> Any:
    """One value that the schema, of a document or one itself, allows."""
    return _Drawing(document or schema, random).value(schema)


class _Drawing:
    def __init__(self, document: Schema, random: Random) -> None:
        self._document, self._random = document, random

    def value(self, schema: Schema) -> Any:
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return self.value(self._document["$defs"][name])
        if (choices := schema.get("anyOf") or schema.get("oneOf")) is not None:
            # What carries a value more often than null, NaN and the infinities.
            weights = [
                1 if choice.get("type") == "null" or "enum" in choice else 4 for choice in choices
            ]
            return self.value(self._random.choices(choices, weights)[0])
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._random.choice(schema["enum"])
        of_type: dict[str | None, Callable[[Schema], Any]] = {
            "object": self._object,
            "array": self._array,
            "string": self._string,
            "integer": self._integer,
            "number": self._number,
            "boolean": lambda _: self._random.random() < 0.5,
            "null": lambda _: None,
            None: lambda _: self._any(DEPTH),
        }
        return of_type[schema.get("type")](schema)

    def _object(self, schema: Schema) -> dict[str, Any]:
        required = schema.get("required", ())
        found = {
            name: self.value(field)
            for name, field in schema.get("properties", {}).items()
            if name in required or self._random.random() < 0.7
        }
        others = schema.get("additionalProperties", False)
        if others is not False:
            rule = {} if others is True else others
            found |= {self._text(8): self.value(rule) for _ in range(self._random.randrange(4))}
        return found

    def _array(self, schema: Schema) -> list[Any]:
        places = [self.value(place) for place in schema.get("prefixItems", ())]
        if places:
            return places
        least = schema.get("minItems", 0)
        most = min(schema.get("maxItems", least + 3), least + 3)
        length = self._random.randint(least, most)
        return [self.value(schema.get("items", {})) for _ in range(length)]

    def _string(self, schema: Schema) -> str:
        if "dtype" in schema:
            return self._numbers(schema["dtype"])
        match schema.get("format"):
            case "uuid":
                return str(UUID(int=self._random.getrandbits(128), version=5))
            case "date-time":
                later = timedelta(microseconds=self._random.randrange(10**14))
                return (BEGAN + later).isoformat().replace("+00:00", "Z")
            case _ if "sha256" in schema.get("pattern", ""):
                return f"blob:sha256:{self._random.getrandbits(256):064x}"
            case _:
                return self._text(schema.get("maxLength", 24), schema.get("minLength", 0))

    def _numbers(self, dtype: str) -> str:
        count = self._random.randrange(6)
        if dtype == "<i4":
            numbers = [self._random.randrange(-(2**31), 2**31) for _ in range(count)]
            return base64.b64encode(pack(f"<{count}i", *numbers)).decode()
        reals = [self._random.choice([0.0, -0.5, float("nan"), 1e30]) for _ in range(count)]
        return base64.b64encode(pack(f"<{count}f", *reals)).decode()

    def _text(self, longest: int, shortest: int = 0) -> str:
        length = self._random.randint(shortest, longest)
        return "".join(self._random.choice(LETTERS) for _ in range(length))

    def _integer(self, schema: Schema) -> int:
        least = int(schema.get("minimum", -LARGEST))
        most = int(min(LARGEST, schema.get("maximum", LARGEST)))
        return self._random.choice([least, most, self._random.randint(least, most)])

    def _number(self, schema: Schema) -> float:
        bounds = {"exclusiveMinimum": -1e9, "exclusiveMaximum": 1e9} | schema
        least = float(bounds.get("minimum", bounds["exclusiveMinimum"]))
        most = float(bounds.get("maximum", bounds["exclusiveMaximum"]))
        # Never the bounds themselves, which may be exclusive.
        return least + (most - least) * self._random.uniform(1e-6, 1 - 1e-6)

    def _any(self, depth: int) -> Any:
        plain = [
            None,
            True,
            self._random.randrange(-(2**53), 2**53),
            self._random.gauss(0, 1e3),
            self._text(12),
        ]
        kind = self._random.randrange(8 if depth else 5)
        if kind < 5:
            return plain[kind]
        if kind == 5:
            return [self._any(depth - 1) for _ in range(self._random.randrange(3))]
        return {self._text(6): self._any(depth - 1) for _ in range(self._random.randrange(3))}

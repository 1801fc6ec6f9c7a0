"""Old versions of payloads brought up to the current one.

Pure functions, dict -> dict, one version at a time.
"""

from collections.abc import Callable

from pydantic import JsonValue

TypeVersion = tuple[str, int]
Upcaster = Callable[[dict[str, JsonValue]], dict[str, JsonValue]]

UPCASTERS: dict[TypeVersion, Upcaster] = {}
"""(type, version) -> function to the next version. Empty as long as every type is at version 1."""


def upcast(
    type_: str, version: int, data: dict[str, JsonValue]
) -> tuple[int, dict[str, JsonValue]]:
    """Apply upcasters until none is left; the version reached and the data in it."""
    while (step := UPCASTERS.get((type_, version))) is not None:
        data = step(data)
        version += 1
    return version, data

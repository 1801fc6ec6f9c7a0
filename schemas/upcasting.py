"""Upcasters: pure functions dict -> dict that lift a payload from one version to the next.

They run before validation, so they return data of an unexpected shape unchanged and leave the
error to the schema.
"""

from collections.abc import Callable

from pydantic import JsonValue

TypeVersion = tuple[str, int]
Upcaster = Callable[[dict[str, JsonValue]], dict[str, JsonValue]]


def _turn_taken_1_to_2(data: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """`prompt_images` had the whole prompt's images; from version 2 only those of the extension.

    A prompt of turn t that extends turn n's has t - n new images, the last ones: version 1 was
    written with one image per turn. A shorter list has nothing to cut.
    """
    tokens, turn = data.get("tokens"), data.get("turn")
    if not isinstance(tokens, dict) or not isinstance(turn, int):
        return data
    extends, images = tokens.get("prompt_extends"), tokens.get("prompt_images")
    if not isinstance(extends, int) or not isinstance(images, list):
        return data
    num_new = turn - extends
    if not 0 < num_new < len(images):
        return data
    return data | {"tokens": tokens | {"prompt_images": images[-num_new:]}}


UPCASTERS: dict[TypeVersion, Upcaster] = {
    ("cua.rollout.turn_taken", 1): _turn_taken_1_to_2,
}
"""(type, version) -> upcaster to the next version."""


def upcast(
    type_: str, version: int, data: dict[str, JsonValue]
) -> tuple[int, dict[str, JsonValue]]:
    """The newest known version, and the payload lifted to it."""
    while (step := UPCASTERS.get((type_, version))) is not None:
        data = step(data)
        version += 1
    return version, data

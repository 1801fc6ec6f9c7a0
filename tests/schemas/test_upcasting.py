"""Payloads of old versions as the current version has them, worked out by hand."""

import pytest
from pydantic import JsonValue

from schemas.upcasting import upcast

TURN_TAKEN = "cua.rollout.turn_taken"


def turn(number: JsonValue, tokens: JsonValue) -> dict[str, JsonValue]:
    return {"turn": number, "model_response": "click", "tokens": tokens}


def tokens(extends: JsonValue, images: JsonValue) -> dict[str, JsonValue]:
    return {"prompt_extends": extends, "prompt_images": images, "stop_reason": "stop"}


@pytest.mark.parametrize(
    ("number", "extends", "whole", "new"),
    [
        (1, None, ["a"], ["a"]),
        (2, 1, ["a", "b"], ["b"]),
        (3, 2, ["a", "b", "c"], ["c"]),
        (3, 1, ["a", "b", "c"], ["b", "c"]),
        (7, None, ["d", "e", "f"], ["d", "e", "f"]),
        (8, 7, ["d", "e", "f", "g"], ["g"]),
        (2, 1, ["b"], ["b"]),
        (2, 1, [], []),
        (7, 7, ["g"], ["g"]),
        (1, 2, ["a"], ["a"]),
    ],
    ids=str,
)
def test_a_turn_of_version_1_keeps_the_images_that_its_prompt_adds(
    number: int, extends: int | None, whole: list[JsonValue], new: list[JsonValue]
) -> None:
    assert upcast(TURN_TAKEN, 1, turn(number, tokens(extends, whole))) == (
        2,
        turn(number, tokens(extends, new)),
    )


@pytest.mark.parametrize(
    "data",
    [
        turn(2, None),
        turn(2, "tokens"),
        turn("2", tokens(1, ["a", "b"])),
        turn(2, tokens("1", ["a", "b"])),
        turn(2, tokens(1, "ab")),
        turn(2, {}),
        {},
    ],
    ids=str,
)
def test_a_turn_of_another_shape_is_left_to_the_schema(data: dict[str, JsonValue]) -> None:
    assert upcast(TURN_TAKEN, 1, data) == (2, data)


def test_upcasting_changes_nothing_in_place() -> None:
    data = turn(2, tokens(1, ["a", "b"]))
    upcast(TURN_TAKEN, 1, data)
    assert data == turn(2, tokens(1, ["a", "b"]))


def test_the_current_version_and_unknown_types_are_left_alone() -> None:
    data = turn(2, tokens(1, ["a", "b"]))
    assert upcast(TURN_TAKEN, 2, data) == (2, data)
    assert upcast("cua.later.fact", 1, data) == (1, data)

"""The Anthropic codec: `tool_use` blocks of the tool `computer`.

    {"type": "tool_use", "name": "computer",
     "input": {"action": "left_click", "coordinate": [3, 4]}}

Coordinates are pixels; scrolling counts clicks of the wheel, of 100 pixels each. What the tool has
no word for are blocks of tools that are named as in `schemas.actions`. A text is one block or a
list of them; text and thinking among them are passed over.
"""

import json
from collections.abc import Callable
from typing import Final

from pydantic import JsonValue

from producer.codecs.codec import parse_error
from producer.codecs.json_calls import BadCallError, Fields, action_of, parse_items, taken
from schemas import actions
from schemas.actions import Action
from schemas.turn import TakenAction

WHEEL_PX: Final = 100
"""Pixels of one click of the wheel."""
MAX_CLICKS: Final = 10_000
PASSED_OVER: Final = ("text", "thinking", "redacted_thinking")
EXAMPLE: Final = '{"type": "tool_use", "name": "computer", "input": {...}}'
BUTTONS: Final = {"left": "left_click", "right": "right_click", "wheel": "middle_click"}
DIRECTIONS: Final = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}


class AnthropicCodec:
    """The Anthropic codec; the format is described in the module. Stateless."""

    name = "anthropic"

    def encode(self, action: Action, width_px: int, height_px: int) -> str:  # noqa: ARG002  # the interface's
        """The action as one block, whatever it is."""
        given = _input(action)
        name = "computer"
        if given is None:
            name, given = action.type, action.model_dump(mode="json", exclude={"type"})
        return json.dumps({"type": "tool_use", "name": name, "input": given}, ensure_ascii=False)

    def parse(self, text: str, width_px: int, height_px: int) -> tuple[TakenAction, ...]:
        """Parse every call in the blocks."""
        return parse_items(
            text, EXAMPLE, PASSED_OVER, lambda block: [_block(block, width_px, height_px)]
        )


def _input(action: Action) -> Fields | None:  # noqa: PLR0911  # one per action
    """The input of the tool `computer`; None where it has no word for the action."""
    match action:
        case actions.Click(button="left" | "right" | "wheel"):
            return {"action": BUTTONS[action.button], "coordinate": [action.x, action.y]}
        case actions.DoubleClick():
            return {"action": "double_click", "coordinate": [action.x, action.y]}
        case actions.Move():
            return {"action": "mouse_move", "coordinate": [action.x, action.y]}
        case actions.Drag(path=(start, end)):
            return {
                "action": "left_click_drag",
                "start_coordinate": list(start),
                "coordinate": list(end),
            }
        case actions.KeyPress(keys=keys) if all(_is_plain(key) for key in keys):
            return {"action": "key", "text": "+".join(keys)}
        case actions.Type():
            return {"action": "type", "text": action.text}
        case actions.Screenshot():
            return {"action": "screenshot"}
        case actions.Wait():
            return {"action": "wait", "duration": action.duration_s}
        case actions.Scroll():
            return _scroll_input(action)
        case _:
            return None


def _is_plain(key: str) -> bool:
    return bool(key) and "+" not in key


def _scroll_input(action: actions.Scroll) -> Fields | None:
    """None for a diagonal, and for what is no whole number of clicks."""
    distance = action.scroll_x or action.scroll_y
    if (action.scroll_x and action.scroll_y) or distance % WHEEL_PX:
        return None
    way = ("left", "right") if action.scroll_x else ("up", "down")
    return {
        "action": "scroll",
        "coordinate": [action.x, action.y],
        "scroll_direction": way[distance >= 0],
        "scroll_amount": abs(distance) // WHEEL_PX,
    }


def _block(block: Fields, width_px: int, height_px: int) -> TakenAction:
    name, given = block.get("name"), block.get("input")
    if not isinstance(name, str) or not isinstance(given, dict):
        return parse_error("parse", f"a call is {EXAMPLE}, not {str(block)[:80]!r}")

    def read() -> Action:
        fields = _fields(given) if name == "computer" else {**given, "type": name}
        return action_of(fields, width_px, height_px)

    return taken(name, given, read)


def _fields(given: Fields) -> Fields:
    """The fields of the action that an input means. BadCallError."""
    name = given.get("action")
    read = READ.get(name) if isinstance(name, str) else None
    if read is None:
        message = f"unknown action {name!r}; use one of {', '.join(READ)}"
        raise BadCallError(message, "tool_name")
    return read(given)


def _point(given: Fields, name: str = "coordinate") -> tuple[JsonValue, JsonValue]:
    value = given.get(name)
    match value:
        case [int() as x, int() as y] if not isinstance(x, bool) and not isinstance(y, bool):
            return x, y
        case _:
            message = f"{name} must be [x, y] in whole pixels, not {str(value)[:80]!r}"
            raise BadCallError(message)


def _at(kind: str, given: Fields, **more: JsonValue) -> Fields:
    x, y = _point(given)
    return {"type": kind, "x": x, "y": y, **more}


def _keys(given: Fields) -> Fields:
    text = given.get("text")
    if not isinstance(text, str) or not text:
        message = f"text must name keys such as ctrl+s, not {str(text)[:80]!r}"
        raise BadCallError(message)
    keys: list[JsonValue] = [text] if text.strip("+") == "" else [*text.split("+")]
    return {"type": "keypress", "keys": keys}


def _scroll(given: Fields) -> Fields:
    direction, amount = given.get("scroll_direction"), given.get("scroll_amount")
    if not isinstance(direction, str) or direction not in DIRECTIONS:
        message = f"scroll_direction must be up, down, left or right, not {str(direction)[:80]!r}"
        raise BadCallError(message)
    if isinstance(amount, bool) or not isinstance(amount, int) or not 0 <= amount <= MAX_CLICKS:
        message = f"scroll_amount must be 0 to {MAX_CLICKS}, not {str(amount)[:80]!r}"
        raise BadCallError(message)
    x, y = DIRECTIONS[direction]
    return _at("scroll", given, scroll_x=x * amount * WHEEL_PX, scroll_y=y * amount * WHEEL_PX)


READ: Final[dict[str, Callable[[Fields], Fields]]] = {
    "left_click": lambda given: _at("click", given),
    "right_click": lambda given: _at("click", given, button="right"),
    "middle_click": lambda given: _at("click", given, button="wheel"),
    "double_click": lambda given: _at("double_click", given),
    "triple_click": lambda given: _at("double_click", given),
    "mouse_move": lambda given: _at("move", given),
    "left_click_drag": lambda given: {
        "type": "drag",
        "path": [[*_point(given, "start_coordinate")], [*_point(given)]],
    },
    "key": _keys,
    "type": lambda given: {"type": "type", "text": given.get("text")},
    "screenshot": lambda _given: {"type": "screenshot"},
    "scroll": _scroll,
    "wait": lambda given: {"type": "wait", "duration_s": given.get("duration")},
}
"""Action of the tool `computer` -> fields of ours."""

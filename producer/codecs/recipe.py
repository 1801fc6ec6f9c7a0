"""The codec of the seed recipe's three tools: `action`, `wait` and `finish`.

    <tool_call>
    {"name": "action", "arguments": {"action_type": "click", "option": "left",
     "target": {"element": "Settings", "coordinates": [312, 540]}}}
    </tool_call>

Coordinates run from 0 to 1000 on each axis, as in Qwen3-VL. `element` describes the target in words
and is recorded with the call; `coordinates` is the point. A `finish` with a `result_message` is an
answer that ends the episode.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from producer.codecs.codec import Codec, cannot_encode, parse_error
from producer.codecs.json_calls import (
    CALL,
    SCALE,
    BadCallError,
    Fields,
    action_of,
    encode_call,
    named_arguments,
    no_call,
    pixel_of,
    scaled,
    taken,
)
from producer.thoughts import CALL_LITERAL
from schemas import actions
from schemas.actions import Action
from schemas.turn import TakenAction

TOOLS: Final = ("action", "wait", "finish")
DOUBLE: Final = "double"
"""The `option` that makes a click a double click."""
DIRECTIONS: Final = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
MAX_DISTANCE: Final = 100_000
RECIPE_PROMPT: Final = """\
You operate a phone by its screenshots. Each turn you see the screen and answer with one tool call:
<tool_call>
{"name": TOOL, "arguments": {...}}
</tool_call>
Tools:
action (action_type: click, with option left, right or double, and target; long_press: target, \
duration in seconds; drag or swipe: start_target, end_target; scroll: target, direction up, down, \
left or right, distance in pixels; type: text; key: keys, a list; button: button home, back or \
recents; move: target; screenshot). A target is {"element": what it is, "coordinates": [x, y]}.
wait (duration in seconds).
finish (success: true or false; result_message).
Coordinates run from 0 to 1000 on each axis, from the top left. \
Call finish when the task is done or cannot be done."""


class RecipeCodec(Codec):
    """The codec of the recipe's tools; the format is described in the module. Stateless."""

    name = "recipe"
    literals = CALL_LITERAL

    def encode(self, action: Action, width_px: int, height_px: int) -> str:
        """Write the action as one tool call.

        Raises CannotEncodeError for answers that do not end the episode, opening an app by its
        name, diagonal scrolls and drags around corners.
        """
        match action:
            case actions.Wait():
                return encode_call("wait", {"duration": action.duration_s})
            case actions.Terminate():
                return encode_call("finish", {"success": action.status == "success"})
            case _:
                return encode_call("action", _arguments(action, width_px, height_px))

    def parse_answer(self, answer: str, width_px: int, height_px: int) -> tuple[TakenAction, ...]:
        """Parse every tool call in the text."""
        parsed = [
            item for call in CALL.findall(answer) for item in _parse_call(call, width_px, height_px)
        ]
        return tuple(parsed) or (no_call(answer),)


def _arguments(action: Action, width_px: int, height_px: int) -> Fields:  # noqa: C901  # one branch per action
    def target(x: int, y: int) -> JsonValue:
        return {"coordinates": [scaled(x, width_px), scaled(y, height_px)]}

    def ends(start: tuple[int, int], end: tuple[int, int]) -> Fields:
        return {"start_target": target(*start), "end_target": target(*end)}

    name: str = action.type
    rest: Fields
    match action:
        case actions.Click(x=x, y=y):
            rest = {"option": action.button, "target": target(x, y)}
        case actions.DoubleClick(x=x, y=y):
            name, rest = "click", {"option": DOUBLE, "target": target(x, y)}
        case actions.LongPress(x=x, y=y):
            rest = {"target": target(x, y), "duration": action.duration_s}
        case actions.Move(x=x, y=y):
            rest = {"target": target(x, y)}
        case actions.Swipe(x=x, y=y):
            rest = ends((x, y), (action.to_x, action.to_y))
        case actions.Drag(path=(start, end)):
            rest = ends(start, end)
        case actions.Scroll(x=x, y=y) if not (action.scroll_x and action.scroll_y):
            distance = action.scroll_x or action.scroll_y
            direction = (("left", "right") if action.scroll_x else ("up", "down"))[distance >= 0]
            rest = {"target": target(x, y), "direction": direction, "distance": abs(distance)}
        case actions.Type():
            rest = {"text": action.text}
        case actions.KeyPress():
            name, rest = "key", {"keys": list(action.keys)}
        case actions.SystemButton():
            name, rest = "button", {"button": action.button}
        case actions.Screenshot():
            rest = {}
        case _:
            return cannot_encode("recipe", action)
    return {"action_type": name, **rest}


def _parse_call(call: str, width_px: int, height_px: int) -> list[TakenAction]:
    try:
        tool, given = named_arguments(call, TOOLS)
    except BadCallError as error:
        return [parse_error(error.error_type, str(error))]
    if tool == "finish":
        return _finish(given)
    if tool == "wait":
        fields: Fields = {"type": "wait", "duration_s": given.get("duration", 1.0)}
        return [taken(tool, given, lambda: action_of(fields, width_px, height_px))]
    return [taken(tool, given, lambda: _action(given, width_px, height_px))]


def _finish(given: Fields) -> list[TakenAction]:
    success, said = given.get("success"), given.get("result_message")
    if not isinstance(success, bool):
        message = f"success must be true or false, not {str(success)[:80]!r}"
        return [parse_error("tool_arg", message, "finish", given)]
    if said is not None and not isinstance(said, str):
        message = f"result_message must be a string, not {str(said)[:80]!r}"
        return [parse_error("tool_arg", message, "finish", given)]
    end = actions.Terminate(status="success" if success else "failure")
    acts: list[Action] = [actions.Answer(text=said), end] if said else [end]
    return [TakenAction(tool_name="finish", tool_args=given, action=act) for act in acts]


def _action(given: Fields, width_px: int, height_px: int) -> Action:
    """Build the action of a call of the tool `action`. Raises BadCallError, ValidationError."""
    name = given.get("action_type")
    read = READ.get(name) if isinstance(name, str) else None
    if read is None:
        message = f"unknown action_type {name!r}; use one of {', '.join(READ)}"
        raise BadCallError(message[:200], "tool_name")
    return action_of(read(_Call(given, (width_px, height_px))), width_px, height_px)


@dataclass(frozen=True, slots=True)
class _Call:
    """The arguments of one call, on a screen of this size."""

    given: Fields
    screen: tuple[int, int]

    def point(self, name: str = "target") -> tuple[int, int]:
        """A target's position in pixels. Raises BadCallError."""
        target = self.given.get(name)
        value = target.get("coordinates") if isinstance(target, dict) else None
        if isinstance(value, dict):
            value = [value.get("x"), value.get("y")]
        pixel = pixel_of(value, self.screen)
        if pixel is None:
            message = (
                f'{name} must be {{"coordinates": [x, y]}} with numbers from 0 to {SCALE}, not'
                f" {str(target)[:80]!r}"
            )
            raise BadCallError(message)
        return pixel

    def at(self, kind: str, **more: JsonValue) -> Fields:
        """The fields of an action of this kind at the target."""
        x, y = self.point()
        return {"type": kind, "x": x, "y": y, **more}

    def click(self) -> Fields:
        """A click of the kind that its option names."""
        option = self.given.get("option", "left")
        return self.at("double_click") if option == DOUBLE else self.at("click", button=option)

    def swipe(self) -> Fields:
        """A swipe from one target to the other."""
        (x, y), (to_x, to_y) = self.point("start_target"), self.point("end_target")
        return {"type": "swipe", "x": x, "y": y, "to_x": to_x, "to_y": to_y}

    def scroll(self) -> Fields:
        """A scroll by direction and distance."""
        direction, distance = self.given.get("direction"), self.given.get("distance")
        if not isinstance(direction, str) or direction not in DIRECTIONS:
            message = f"direction must be up, down, left or right, not {str(direction)[:80]!r}"
            raise BadCallError(message)
        is_whole = isinstance(distance, int) and not isinstance(distance, bool)
        if not isinstance(distance, int) or not is_whole or not 0 <= distance <= MAX_DISTANCE:
            message = f"distance must be 0 to {MAX_DISTANCE} pixels, not {str(distance)[:80]!r}"
            raise BadCallError(message)
        x, y = DIRECTIONS[direction]
        return self.at("scroll", scroll_x=x * distance, scroll_y=y * distance)


READ: Final[dict[str, Callable[[_Call], Fields]]] = {
    "click": _Call.click,
    "long_press": lambda call: call.at("long_press", duration_s=call.given.get("duration", 1.0)),
    "move": lambda call: call.at("move"),
    "swipe": _Call.swipe,
    "drag": lambda call: {
        "type": "drag",
        "path": [[*call.point("start_target")], [*call.point("end_target")]],
    },
    "scroll": _Call.scroll,
    "type": lambda call: {"type": "type", "text": call.given.get("text")},
    "key": lambda call: {"type": "keypress", "keys": call.given.get("keys")},
    "button": lambda call: {"type": "system_button", "button": call.given.get("button")},
    "screenshot": lambda _call: {"type": "screenshot"},
}
"""Maps `action_type` to a function that builds our fields."""

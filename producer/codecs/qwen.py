"""The Qwen codec: `mobile_use` and `computer_use` tool calls.

JSON between <tool_call> tags, coordinates from 0 to 1000 on each axis.

    <tool_call>
    {"name": "mobile_use", "arguments": {"action": "click", "coordinate": [312, 540]}}
    </tool_call>

Encodes as `mobile_use`; parses both, and the actions of either under both names. A completion may
contain several calls.
"""

import json
import re
from collections.abc import Callable

from pydantic import JsonValue

from producer.codecs.codec import cannot_encode, parse_error
from producer.codecs.json_calls import BadCallError, Fields, named_arguments, taken
from schemas import actions
from schemas.actions import Action
from schemas.turn import TakenAction

OWN_PROMPT = """\
You operate a phone by its screenshots. Each turn you see the screen and answer with one tool call:
<tool_call>
{"name": "mobile_use", "arguments": {"action": ACTION, ...}}
</tool_call>
Actions: click, long_press (coordinate [x, y]; long_press also time in seconds); \
swipe (coordinate, coordinate2); type (text);
system_button (button: Back, Home, Menu); open (text: package name); wait (time); \
answer (text); terminate (status: success or failure).
Coordinates run from 0 to 1000 on each axis, from the top left. \
Call terminate when the task is done or cannot be done."""
"""For a policy without Qwen's official schema in its prompt."""
SCALE = 1000
CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
TOOLS = ("mobile_use", "computer_use")
BUTTONS = {"home": "Home", "back": "Back", "recents": "Menu"}
KEY_BUTTONS = ("power", "volume_up", "volume_down")
"""System buttons that the tool writes as keys."""
MAX_NUMBER = 1_000_000
"""Of pixels or seconds."""


class QwenCodec:
    """The Qwen codec; the format is described in the module."""

    name = "qwen"

    def encode(self, action: Action, width_px: int, height_px: int) -> str:
        """The action as one tool call.

        CannotEncodeError for drags, screenshots, diagonal scrolls and a mouse's back and forward.
        """
        return encode_call(TOOLS[0], self.arguments(action, width_px, height_px, (SCALE, SCALE)))

    def arguments(
        self, action: Action, width_px: int, height_px: int, size: tuple[int, int]
    ) -> Fields:
        """The arguments of the action's call; coordinates refer to `size`. CannotEncodeError."""
        at_point = _encode_at_point(action, (width_px, height_px), size)
        return _encode_elsewhere(action) if at_point is None else at_point

    def parse(self, text: str, width_px: int, height_px: int) -> tuple[TakenAction, ...]:
        """Parse every tool call in the text."""
        calls = CALL.findall(text)
        if not calls:
            return (parse_error("parse", f"no <tool_call>...</tool_call> in {text[:80]!r}"),)
        return tuple(parse_call(call, (width_px, height_px), (SCALE, SCALE)) for call in calls)


def encode_call(tool: str, arguments: Fields) -> str:
    """A tool call as the chat template writes it."""
    call = json.dumps({"name": tool, "arguments": arguments}, ensure_ascii=False)
    return f"<tool_call>\n{call}\n</tool_call>"


def scaled(pixel: int, size_px: int, size: int) -> int:
    """The pixel's middle in units of `size`; the pixel itself where those are pixels."""
    return pixel if size == size_px else round((pixel + 0.5) * size / size_px)


def _encode_at_point(  # noqa: PLR0911  # one per action
    action: Action, screen: tuple[int, int], size: tuple[int, int]
) -> Fields | None:
    def point(x: int, y: int) -> JsonValue:
        return [scaled(x, screen[0], size[0]), scaled(y, screen[1], size[1])]

    match action:
        case actions.Click(button="left" | "right" | "wheel"):
            name = {"left": "click", "right": "right_click", "wheel": "middle_click"}[action.button]
            return {"action": name, "coordinate": point(action.x, action.y)}
        case actions.DoubleClick():
            return {"action": "double_click", "coordinate": point(action.x, action.y)}
        case actions.LongPress():
            return {
                "action": "long_press",
                "coordinate": point(action.x, action.y),
                "time": action.duration_s,
            }
        case actions.Swipe():
            return {
                "action": "swipe",
                "coordinate": point(action.x, action.y),
                "coordinate2": point(action.to_x, action.to_y),
            }
        case actions.Scroll(scroll_x=0):
            return {
                "action": "scroll",
                "coordinate": point(action.x, action.y),
                "pixels": -action.scroll_y,
            }
        case actions.Scroll(scroll_y=0):
            return {
                "action": "hscroll",
                "coordinate": point(action.x, action.y),
                "pixels": action.scroll_x,
            }
        case actions.Move():
            return {"action": "mouse_move", "coordinate": point(action.x, action.y)}
        case _:
            return None


def _encode_elsewhere(action: Action) -> Fields:  # noqa: PLR0911  # one per action
    match action:
        case actions.KeyPress():
            return {"action": "key", "keys": list(action.keys)}
        case actions.Type() | actions.Answer():
            return {"action": action.type, "text": action.text}
        case actions.SystemButton(button="home" | "back" | "recents"):
            return {"action": "system_button", "button": BUTTONS[action.button]}
        case actions.SystemButton():
            return {"action": "key", "text": action.button}
        case actions.OpenApp():
            return {"action": "open", "text": action.package}
        case actions.Wait():
            return {"action": "wait", "time": action.duration_s}
        case actions.Terminate():
            return {"action": "terminate", "status": action.status}
        case _:
            return cannot_encode("qwen", action)


def parse_call(
    call: str,
    screen: tuple[int, int],
    size: tuple[int, int],
    *,
    tools: tuple[str, ...] = TOOLS,
    names: tuple[str, ...] | None = None,
    start: tuple[int, int] | None = None,
) -> TakenAction:
    """One call on a screen of this size in pixels; its coordinates refer to `size`.

    `tools`, `names`: which tools and actions there are; None: all. `start`: the pointer's place,
    where a drag begins; with it unknown there is no drag.
    """
    try:
        tool, arguments = named_arguments(call, tools, " or ")
    except BadCallError as error:
        return parse_error(error.error_type, str(error))
    return taken(tool, arguments, _Arguments(arguments, screen, size, names, start).action)


class _Arguments:
    """The arguments of one call, on a screen of this size."""

    def __init__(
        self,
        arguments: Fields,
        screen: tuple[int, int],
        size: tuple[int, int],
        names: tuple[str, ...] | None,
        start: tuple[int, int] | None,
    ) -> None:
        self.arguments = arguments
        self.screen = screen
        self.size = size
        self.names = names
        self.start = start

    def action(self) -> Action:
        """The action. BadCallError, ValidationError."""
        name = self.arguments.get("action")
        names = tuple(ACTIONS) if self.names is None else self.names
        read = ACTIONS.get(name) if isinstance(name, str) and name in names else None
        if read is None:
            message = f"unknown action {name!r}; use one of {', '.join(names)}"
            raise BadCallError(message, "tool_name")
        return read(self)

    def point(self, name: str = "coordinate") -> dict[str, int]:
        """A coordinate in pixels."""
        value = self.arguments.get(name)
        if value is None and self.names is not None and "scroll" in str(self.arguments["action"]):
            # The official schema requires none; the middle is where there is something to scroll.
            return {"x": self.screen[0] // 2, "y": self.screen[1] // 2}
        numbers = (
            [part for part in value if isinstance(part, int | float) and not isinstance(part, bool)]
            if isinstance(value, list)
            else []
        )
        if (
            not isinstance(value, list)
            or len(value) != 2
            or len(numbers) != 2
            or not all(0 <= part <= most for part, most in zip(numbers, self.size, strict=True))
        ):
            limit = " and ".join(dict.fromkeys(map(str, self.size)))
            message = f"{name} must be [x, y] with numbers from 0 to {limit}, not {value!r}"
            raise BadCallError(message)
        x, y = (
            int(share * pixels // most)
            for share, pixels, most in zip(numbers, self.screen, self.size, strict=True)
        )
        return {"x": min(x, self.screen[0] - 1), "y": min(y, self.screen[1] - 1)}

    def text(self, name: str = "text") -> str:
        """A text argument."""
        value = self.arguments.get(name)
        if not isinstance(value, str):
            message = f"{name} must be a string, not {value!r}"
            raise BadCallError(message)
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """A number argument."""
        value = self.arguments.get(name, default)
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not abs(value) <= MAX_NUMBER  # NaN is not either, and a float holds no larger int
        ):
            message = f"{name} must be a number of at most {MAX_NUMBER:,}, not {value!r}"
            raise BadCallError(message)
        return float(value)


def _swipe(call: _Arguments) -> Action:
    end = call.point("coordinate2")
    return actions.Swipe(**call.point(), to_x=end["x"], to_y=end["y"])


def _key(call: _Arguments) -> Action:
    keys = call.arguments.get("keys")
    if isinstance(keys, list) and keys and all(isinstance(key, str) for key in keys):
        return actions.KeyPress(keys=tuple(str(key) for key in keys))
    text = call.text()
    return (
        actions.SystemButton.model_validate({"button": text})
        if text in KEY_BUTTONS
        else actions.KeyPress(keys=(text,))
    )


def _button(call: _Arguments) -> Action:
    button = call.text("button").lower()
    if button == "enter":
        return actions.KeyPress(keys=("enter",))
    return actions.SystemButton.model_validate(
        {"button": "recents" if button == "menu" else button}
    )


def _drag(call: _Arguments) -> Action:
    if call.start is None:
        message = "left_click_drag begins at the pointer; move it there in the same answer"
        raise BadCallError(message)
    end = call.point()
    return actions.Drag(path=(call.start, (end["x"], end["y"])))


ACTIONS: dict[str, Callable[[_Arguments], Action]] = {
    "click": lambda call: actions.Click(**call.point()),
    "left_click": lambda call: actions.Click(**call.point()),
    "right_click": lambda call: actions.Click(**call.point(), button="right"),
    "middle_click": lambda call: actions.Click(**call.point(), button="wheel"),
    "double_click": lambda call: actions.DoubleClick(**call.point()),
    "long_press": lambda call: actions.LongPress(
        **call.point(), duration_s=call.number("time", 1.0)
    ),
    "swipe": _swipe,
    "scroll": lambda call: actions.Scroll(**call.point(), scroll_y=-round(call.number("pixels"))),
    "hscroll": lambda call: actions.Scroll(**call.point(), scroll_x=round(call.number("pixels"))),
    "triple_click": lambda call: actions.DoubleClick(**call.point()),
    "left_click_drag": _drag,
    "mouse_move": lambda call: actions.Move(**call.point()),
    "key": _key,
    "type": lambda call: actions.Type(text=call.text()),
    "answer": lambda call: actions.Answer(text=call.text()),
    "system_button": _button,
    "open": lambda call: actions.OpenApp(package=call.text()),
    "wait": lambda call: actions.Wait(duration_s=call.number("time", 1.0)),
    "terminate": lambda call: actions.Terminate.model_validate(
        {"status": call.arguments.get("status", "success")}
    ),
}
"""Action name -> how its arguments are parsed."""

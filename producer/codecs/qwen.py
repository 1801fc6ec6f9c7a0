"""The Qwen codec: `mobile_use` and `computer_use` tool calls.

JSON between <tool_call> tags, coordinates from 0 to 1000 on each axis.

    <tool_call>
    {"name": "mobile_use", "arguments": {"action": "click", "coordinate": [312, 540]}}
    </tool_call>

Encodes as `mobile_use`; parses both, and the actions of either under both names. A completion may
contain several calls.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import JsonValue

from producer.codecs.codec import Codec, cannot_encode, parse_error
from producer.codecs.json_calls import (
    CALL,
    SCALE,
    BadCallError,
    Fields,
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
TOOLS = ("mobile_use", "computer_use")
BUTTONS = {"home": "Home", "back": "Back", "recents": "Menu"}
CLICKS = {"left": "click", "right": "right_click", "wheel": "middle_click"}
KEY_BUTTONS = ("power", "volume_up", "volume_down")
"""System buttons that the tool writes as keys."""
MAX_NUMBER = 1_000_000
"""Of pixels or seconds."""


class QwenCodec(Codec):
    """The Qwen codec; the format is described in the module."""

    name = "qwen"
    literals = CALL_LITERAL

    def encode(self, action: Action, width_px: int, height_px: int) -> str:
        """The action as one tool call.

        CannotEncodeError for drags, screenshots, diagonal scrolls and a mouse's back and forward.
        """
        screen = width_px, height_px
        return encode_call(TOOLS[0], arguments_of(action, screen, (SCALE, SCALE)))

    def parse_answer(self, answer: str, width_px: int, height_px: int) -> tuple[TakenAction, ...]:
        """Parse every tool call in the text."""
        parsed = (
            parse_call(call, (width_px, height_px), (SCALE, SCALE)) for call in CALL.findall(answer)
        )
        return tuple(parsed) or (no_call(answer),)


def arguments_of(  # noqa: C901, PLR0911, PLR0912  # one branch per action
    action: Action, screen: tuple[int, int], size: tuple[int, int]
) -> Fields:
    """The arguments of the action's call; coordinates refer to `size`. CannotEncodeError."""

    def point(x: int, y: int) -> JsonValue:
        return [scaled(x, screen[0], size[0]), scaled(y, screen[1], size[1])]

    name: str = action.type
    rest: Fields = {}
    match action:
        case actions.Click(button="left" | "right" | "wheel"):
            name = CLICKS[action.button]
        case actions.DoubleClick():
            pass
        case actions.LongPress():
            rest = {"time": action.duration_s}
        case actions.Swipe():
            rest = {"coordinate2": point(action.to_x, action.to_y)}
        case actions.Scroll(scroll_x=0):
            rest = {"pixels": -action.scroll_y}
        case actions.Scroll(scroll_y=0):
            name, rest = "hscroll", {"pixels": action.scroll_x}
        case actions.Move():
            name = "mouse_move"
        case actions.KeyPress():
            return {"action": "key", "keys": list(action.keys)}
        case actions.Type() | actions.Answer():
            return {"action": name, "text": action.text}
        case actions.SystemButton(button="home" | "back" | "recents"):
            return {"action": name, "button": BUTTONS[action.button]}
        case actions.SystemButton():
            return {"action": "key", "text": action.button}
        case actions.OpenApp():
            return {"action": "open", "text": action.package}
        case actions.Wait():
            return {"action": name, "time": action.duration_s}
        case actions.Terminate():
            return {"action": name, "status": action.status}
        case _:
            return cannot_encode("qwen", action)
    return {"action": name, "coordinate": point(action.x, action.y), **rest}


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


@dataclass(frozen=True, slots=True)
class _Arguments:
    """The arguments of one call, on a screen of this size."""

    arguments: Fields
    screen: tuple[int, int]
    size: tuple[int, int]
    names: tuple[str, ...] | None
    start: tuple[int, int] | None

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
        pixel = pixel_of(value, self.screen, self.size)
        if pixel is None:
            limit = " and ".join(dict.fromkeys(map(str, self.size)))
            message = f"{name} must be [x, y] with numbers from 0 to {limit}, not {value!r}"
            raise BadCallError(message)
        return dict(zip("xy", pixel, strict=True))

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

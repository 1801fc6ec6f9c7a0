"""The Qwen codec: calls of one of Qwen's official tools, `mobile_use` or `computer_use`.

Each call is JSON between <tool_call> tags. The scale of coordinates depends on the model family.

    <tool_call>
    {"name": "mobile_use", "arguments": {"action": "click", "coordinate": [312, 540]}}
    </tool_call>

A completion may contain several calls. Actions that the tool does not have are errors.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from producer.codecs.codec import Codec, cannot_encode, parse_error
from producer.codecs.json_calls import (
    CALL,
    BadCallError,
    Fields,
    encode_call,
    named_arguments,
    no_call,
    pixel_of,
    scaled,
    taken,
)
from producer.codecs.qwen_tools import ACTIONS_OF, Scale, Size, ToolName, thousandths
from producer.thoughts import CALL_LITERAL
from schemas import actions
from schemas.actions import Action
from schemas.turn import TakenAction

BUTTONS: Final = {"home": "Home", "back": "Back", "recents": "Menu"}
CLICKS: Final = {"left": "left_click", "right": "right_click", "wheel": "middle_click"}
"""Mouse buttons in `computer_use`; a tap in `mobile_use` is `click`."""
KEY_BUTTONS: Final = ("power", "volume_up", "volume_down")
"""System buttons that the tool writes as keys."""
MAX_NUMBER: Final = 1_000_000
"""Upper limit of pixels or seconds."""


class QwenToolCodec(Codec):
    """The codec of one official tool, which is followed strictly. Stateless."""

    literals = CALL_LITERAL

    def __init__(self, tool: ToolName, scale: Scale = thousandths) -> None:
        """`scale` gives the size that coordinates refer to."""
        self.name = "qwen_mobile" if tool == "mobile_use" else "qwen_computer"
        self._tool: ToolName = tool
        self._scale = scale

    def encode(self, action: Action, width_px: int, height_px: int) -> str:
        """Write the action as a tool call, or a drag as two.

        Raises CannotEncodeError for actions that the tool lacks.
        """
        screen, size = (width_px, height_px), self._scale(width_px, height_px)
        is_phone = self._tool == "mobile_use"
        calls = _calls(action, screen, size, is_phone=is_phone)
        if not calls or any(call["action"] not in ACTIONS_OF[self._tool] for call in calls):
            cannot_encode(self.name, action)
        return "\n".join(encode_call(self._tool, call) for call in calls)

    def parse_answer(self, answer: str, width_px: int, height_px: int) -> tuple[TakenAction, ...]:
        """Parse every call of the tool in the text."""
        screen, size = (width_px, height_px), self._scale(width_px, height_px)
        found: list[TakenAction] = []
        for call in CALL.findall(answer):
            parsed = self._parse(call, screen, size, _pointer(found))
            is_drag = isinstance(parsed.action, actions.Drag)
            if is_drag and isinstance(found[-1].action, actions.Move):
                # That move went to the start of this drag and is part of it.
                found.pop()
            found.append(parsed)
        return tuple(found) or (no_call(answer),)

    def _parse(
        self, call: str, screen: tuple[int, int], size: Size, start: tuple[int, int] | None
    ) -> TakenAction:
        try:
            tool, arguments = named_arguments(call, (self._tool,))
        except BadCallError as error:
            return parse_error(error.error_type, str(error))
        read = _Arguments(arguments, screen, size, ACTIONS_OF[self._tool], start)
        return taken(tool, arguments, read.action)


def _calls(  # noqa: C901, PLR0911, PLR0912  # one branch per action
    action: Action, screen: tuple[int, int], size: Size, *, is_phone: bool
) -> list[Fields]:
    """The arguments of the action's calls; empty if neither tool has the action."""

    def point(x: int, y: int) -> JsonValue:
        return [scaled(x, screen[0], size[0]), scaled(y, screen[1], size[1])]

    def at(name: str, x: int, y: int, **rest: JsonValue) -> Fields:
        return {"action": name, "coordinate": point(x, y), **rest}

    match action:
        case actions.Click(x=x, y=y, button="left" | "right" | "wheel"):
            is_tap = is_phone and action.button == "left"
            return [at("click" if is_tap else CLICKS[action.button], x, y)]
        case actions.DoubleClick(x=x, y=y):
            return [at("double_click", x, y)]
        case actions.LongPress(x=x, y=y):
            return [at("long_press", x, y, time=action.duration_s)]
        case actions.Swipe(x=x, y=y):
            return [at("swipe", x, y, coordinate2=point(action.to_x, action.to_y))]
        case actions.Scroll(x=x, y=y, scroll_x=0):
            return [at("scroll", x, y, pixels=-action.scroll_y)]
        case actions.Scroll(x=x, y=y, scroll_y=0):
            return [at("hscroll", x, y, pixels=action.scroll_x)]
        case actions.Move(x=x, y=y):
            return [at("mouse_move", x, y)]
        case actions.Drag(path=((x, y), end)):
            return [at("mouse_move", x, y), at("left_click_drag", *end)]
        case actions.KeyPress(keys=("enter",)) if is_phone:
            return [{"action": "system_button", "button": "Enter"}]
        # The schema's `key` takes one name. Names of buttons would be read as buttons.
        case actions.KeyPress(keys=(key,)) if is_phone and key not in KEY_BUTTONS:
            return [{"action": "key", "text": key}]
        case actions.KeyPress() if not is_phone:
            return [{"action": "key", "keys": list(action.keys)}]
        case actions.SystemButton(button="home" | "back" | "recents"):
            return [{"action": "system_button", "button": BUTTONS[action.button]}]
        case actions.SystemButton() if is_phone:
            return [{"action": "key", "text": action.button}]
        case actions.Type() | actions.Answer():
            return [{"action": action.type, "text": action.text}]
        case actions.OpenApp():
            return [{"action": "open", "text": action.package}]
        case actions.Wait():
            return [{"action": "wait", "time": action.duration_s}]
        case actions.Terminate():
            return [{"action": "terminate", "status": action.status}]
        case _:
            return []


def _pointer(found: list[TakenAction]) -> tuple[int, int] | None:
    """Where the earlier calls left the pointer; None if they do not tell."""
    for item in reversed(found):
        match item.action:
            case actions.Move() | actions.Click() | actions.DoubleClick() | actions.Scroll() as at:
                return at.x, at.y
            case actions.Drag(path=path):
                return path[-1]
            case _:
                continue
    return None


@dataclass(frozen=True, slots=True)
class _Arguments:
    """The arguments of one call, on a screen of this size."""

    arguments: Fields
    screen: tuple[int, int]
    size: tuple[int, int]
    names: Collection[str]
    """Names of the tool's actions."""
    start: tuple[int, int] | None
    """The pointer's position, where a drag begins. None if unknown; then there can be no drag."""

    def action(self) -> Action:
        """Build the action. Raises BadCallError, ValidationError."""
        name = self.arguments.get("action")
        if not isinstance(name, str) or name not in self.names:
            message = f"unknown action {name!r}; use one of {', '.join(self.names)}"
            raise BadCallError(message, "tool_name")
        return READ[name](self)

    def point(self, name: str = "coordinate") -> dict[str, int]:
        """A coordinate in pixels."""
        value = self.arguments.get(name)
        if value is None and "scroll" in str(self.arguments["action"]):
            # The official schema requires no coordinate; the middle of the screen usually scrolls.
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


READ: Final[dict[str, Callable[[_Arguments], Action]]] = {
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
"""Maps an action's name in either tool to the function that reads its arguments."""

"""Qwen's official tools `mobile_use` and `computer_use`: their schemas, their prompt, their codecs.

Names and values are those of Qwen's cookbooks (agent_function_call.py for Qwen2.5-VL, mobile_agent
and computer_use for Qwen3-VL); descriptions are shortened. Qwen3-VL writes coordinates from 0 to
1000 whatever the screen's size, Qwen2.5-VL pixels of the image as it was resized for the policy.
"""

import json
import math
from collections.abc import Callable
from typing import Final, Literal, NamedTuple

from pydantic import JsonValue

from producer.codecs.codec import Codec, cannot_encode
from producer.codecs.json_calls import CALL, SCALE, Fields, encode_call, no_call
from producer.codecs.qwen import KEY_BUTTONS, arguments_of, parse_call
from producer.thoughts import CALL_LITERAL
from schemas import actions
from schemas.actions import Action
from schemas.turn import TakenAction

ToolName = Literal["mobile_use", "computer_use"]


class Size(NamedTuple):
    """Width and height in the units of coordinates."""

    width: int
    height: int


Scale = Callable[[int, int], Size]
"""Screenshot's width and height in pixels -> the size that coordinates refer to."""


def thousandths(_width_px: int, _height_px: int) -> Size:
    """Qwen3-VL: the same for every screen."""
    return Size(SCALE, SCALE)


def resized(factor: int, min_pixels: int, max_pixels: int) -> Scale:
    """Qwen2.5-VL: the screenshot's size after its image processor, multiples of `factor`.

    Source: `smart_resize` in transformers' Qwen2-VL image processor.
    """

    def size(width_px: int, height_px: int) -> Size:
        width = max(factor, round(width_px / factor) * factor)
        height = max(factor, round(height_px / factor) * factor)
        if width * height > max_pixels:
            shrink = math.sqrt(width_px * height_px / max_pixels)
            width = max(factor, math.floor(width_px / shrink / factor) * factor)
            height = max(factor, math.floor(height_px / shrink / factor) * factor)
        elif width * height < min_pixels:
            grow = math.sqrt(min_pixels / (width_px * height_px))
            width = math.ceil(width_px * grow / factor) * factor
            height = math.ceil(height_px * grow / factor) * factor
        return Size(width, height)

    return size


MOBILE_ACTIONS: Final = {
    "key": "Perform a key event, in adb's keyevent syntax: volume_up, volume_down, power, ...",
    "click": "Click the point (x, y).",
    "long_press": "Press the point (x, y) for the specified seconds.",
    "swipe": "Swipe from the point (x, y) to the point coordinate2 (x2, y2).",
    "type": "Input the specified text into the activated input box.",
    "answer": "Output the answer.",
    "system_button": "Press the system button.",
    "open": "Open an app on the device.",
    "wait": "Wait the specified seconds for the change to happen.",
    "terminate": "Terminate the current task and report its completion status.",
}
COMPUTER_ACTIONS: Final = {
    "key": "Press the keys in order, then release them in reverse order.",
    "type": "Type a string of text on the keyboard.",
    "mouse_move": "Move the cursor to the point (x, y).",
    "left_click": "Click the left mouse button at the point (x, y).",
    "left_click_drag": "Press at the cursor and drag it to the point (x, y).",
    "right_click": "Click the right mouse button at the point (x, y).",
    "middle_click": "Click the middle mouse button at the point (x, y).",
    "double_click": "Double-click the left mouse button at the point (x, y).",
    "triple_click": "Triple-click the left mouse button at the point (x, y).",
    "scroll": "Scroll the mouse wheel.",
    "hscroll": "Scroll horizontally.",
    "wait": "Wait the specified seconds for the change to happen.",
    "terminate": "Terminate the current task and report its completion status.",
    "answer": "Answer a question.",
}
ACTIONS_OF: Final[dict[ToolName, dict[str, str]]] = {
    "mobile_use": MOBILE_ACTIONS,
    "computer_use": COMPUTER_ACTIONS,
}
DESCRIPTIONS: Final[dict[ToolName, str]] = {
    "mobile_use": "Use a touchscreen to interact with a mobile device, and take screenshots.",
    "computer_use": "Use a mouse and keyboard to interact with a computer, and take screenshots.",
}
FIELDS: Final[dict[ToolName, dict[str, JsonValue]]] = {
    "mobile_use": {
        "coordinate": {
            "description": "(x, y), from the top left. For click, long_press and swipe.",
            "type": "array",
        },
        "coordinate2": {"description": "(x, y), the end. For swipe.", "type": "array"},
        "text": {"description": "For key, type, answer and open.", "type": "string"},
        "time": {"description": "Seconds. For long_press and wait.", "type": "number"},
        "button": {
            "description": "Back: previous page. Home: desktop. Menu: open apps. Enter: the key."
            " For system_button.",
            "enum": ["Back", "Home", "Menu", "Enter"],
            "type": "string",
        },
        "status": {
            "description": "For terminate.",
            "type": "string",
            "enum": ["success", "failure"],
        },
    },
    "computer_use": {
        "keys": {"description": "For key.", "type": "array"},
        "text": {"description": "For type and answer.", "type": "string"},
        "coordinate": {"description": "(x, y), from the top left.", "type": "array"},
        "pixels": {
            "description": "Positive scrolls up, negative down. For scroll and hscroll.",
            "type": "number",
        },
        "time": {"description": "Seconds. For wait.", "type": "number"},
        "status": {
            "description": "For terminate.",
            "type": "string",
            "enum": ["success", "failure"],
        },
    },
}


def tool_schema(tool: ToolName, resolution: str) -> dict[str, JsonValue]:
    """The function as chat templates and servers take it. `resolution`: `999x999`."""
    named = ACTIONS_OF[tool]
    listed = "\n".join(f"* `{name}`: {text}" for name, text in named.items())
    action: JsonValue = {
        "description": f"The action to perform. The available actions are:\n{listed}",
        "enum": list(named),
        "type": "string",
    }
    return {
        "type": "function",
        "function": {
            "name": tool,
            "description": f"{DESCRIPTIONS[tool]}\n* The screen's resolution is {resolution}.",
            "parameters": {
                "properties": {"action": action, **FIELDS[tool]},
                "required": ["action"],
                "type": "object",
            },
        },
    }


def tools_prompt(tool: ToolName, resolution: str = "999x999") -> str:
    """The system prompt, as Qwen's chat template writes it for one tool."""
    return (
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
        "You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n"
        f"{json.dumps(tool_schema(tool, resolution), ensure_ascii=False)}\n</tools>\n\n"
        "For each function call, return a json object with function name and arguments within"
        " <tool_call></tool_call> XML tags:\n<tool_call>\n"
        '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
    )


class QwenToolCodec(Codec):
    """One official tool, strictly: what it does not have is an error. Stateless."""

    literals = CALL_LITERAL

    def __init__(self, tool: ToolName, scale: Scale = thousandths) -> None:
        """`scale`: what coordinates refer to."""
        self.name = "qwen_mobile" if tool == "mobile_use" else "qwen_computer"
        self._tool: ToolName = tool
        self._scale = scale

    def encode(self, action: Action, width_px: int, height_px: int) -> str:
        """The action as a tool call; a drag as two. CannotEncodeError for what the tool lacks."""
        screen, size = (width_px, height_px), self._scale(width_px, height_px)
        write = self._mobile if self._tool == "mobile_use" else self._computer
        return "\n".join(encode_call(self._tool, call) for call in write(action, screen, size))

    def parse_answer(self, answer: str, width_px: int, height_px: int) -> tuple[TakenAction, ...]:
        """Parse every call of the tool in the text."""
        size = self._scale(width_px, height_px)
        taken: list[TakenAction] = []
        for call in CALL.findall(answer):
            parsed = parse_call(
                call,
                (width_px, height_px),
                size,
                tools=(self._tool,),
                names=tuple(ACTIONS_OF[self._tool]),
                start=_pointer(taken),
            )
            is_drag = isinstance(parsed.action, actions.Drag)
            if is_drag and isinstance(taken[-1].action, actions.Move):
                # It was moved to where the drag begins.
                taken.pop()
            taken.append(parsed)
        return tuple(taken) or (no_call(answer),)

    def _mobile(self, action: Action, screen: tuple[int, int], size: Size) -> tuple[Fields, ...]:
        match action:
            case actions.KeyPress(keys=("enter",)):
                return ({"action": "system_button", "button": "Enter"},)
            # The schema's `key` takes one name; those of buttons would be read as buttons.
            case actions.KeyPress(keys=(key,)) if key not in KEY_BUTTONS:
                return ({"action": "key", "text": key},)
            case (
                actions.Click(button="left")
                | actions.LongPress()
                | actions.Swipe()
                | actions.Type()
                | actions.Answer()
                | actions.SystemButton()
                | actions.OpenApp()
                | actions.Wait()
                | actions.Terminate()
            ):
                return (arguments_of(action, screen, size),)
            case _:
                return cannot_encode(self.name, action)

    def _computer(self, action: Action, screen: tuple[int, int], size: Size) -> tuple[Fields, ...]:
        match action:
            case actions.Drag(path=(start, end)):
                moves = [actions.Move(x=x, y=y) for x, y in (start, end)]
                first, last = (arguments_of(move, screen, size) for move in moves)
                return first, {**last, "action": "left_click_drag"}
            case actions.Click(button="left"):
                return ({**arguments_of(action, screen, size), "action": "left_click"},)
            case (
                actions.Click()
                | actions.DoubleClick()
                | actions.Move()
                | actions.Scroll()
                | actions.KeyPress()
                | actions.Type()
                | actions.Answer()
                | actions.Wait()
                | actions.Terminate()
            ):
                return (arguments_of(action, screen, size),)
            case _:
                return cannot_encode(self.name, action)


def _pointer(taken: list[TakenAction]) -> tuple[int, int] | None:
    """Where the calls before left the pointer; None: they do not say."""
    for item in reversed(taken):
        match item.action:
            case actions.Move() | actions.Click() | actions.DoubleClick() | actions.Scroll() as at:
                return at.x, at.y
            case actions.Drag(path=path):
                return path[-1]
            case _:
                continue
    return None

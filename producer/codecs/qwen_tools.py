"""Qwen's official tools `mobile_use` and `computer_use`: their schemas and their prompt.

Names and values are those of Qwen's cookbooks (agent_function_call.py for Qwen2.5-VL, mobile_agent
and computer_use for Qwen3-VL); descriptions are shortened. Qwen3-VL writes coordinates from 0 to
1000 whatever the screen's size; Qwen2.5-VL writes pixels of the image after it was resized for the
policy.
"""

import json
import math
from collections.abc import Callable
from typing import Final, Literal, NamedTuple

from pydantic import JsonValue

from producer.codecs.json_calls import SCALE

ToolName = Literal["mobile_use", "computer_use"]


class Size(NamedTuple):
    """Width and height of the coordinate space."""

    width: int
    height: int


Scale = Callable[[int, int], Size]
"""Maps a screenshot's width and height in pixels to the size that coordinates refer to."""


def thousandths(_width_px: int, _height_px: int) -> Size:
    """Qwen3-VL's scale, the same for every screen."""
    return Size(SCALE, SCALE)


def resized(factor: int, min_pixels: int, max_pixels: int) -> Scale:
    """Qwen2.5-VL's scale: the size of the resized screenshot, in multiples of `factor`.

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
    """The function schema for chat templates and servers, with a `resolution` such as `999x999`."""
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
    """The system prompt that Qwen's chat template writes for one tool."""
    return (
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
        "You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n"
        f"{json.dumps(tool_schema(tool, resolution), ensure_ascii=False)}\n</tools>\n\n"
        "For each function call, return a json object with function name and arguments within"
        " <tool_call></tool_call> XML tags:\n<tool_call>\n"
        '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
    )

"""Shared by the codecs of JSON tool calls: reads untrusted JSON, and builds actions from fields."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from pydantic import JsonValue, TypeAdapter, ValidationError

from producer.bounded_text import MAX_DEPTH, is_deeper
from producer.codecs.codec import ErrorType, parse_error
from schemas.actions import Action
from schemas.turn import TakenAction

ACTION: Final[TypeAdapter[Action]] = TypeAdapter(Action)
MAX_ERROR_CHARACTERS = 200
CALL: Final = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
SCALE: Final = 1000
"""Range of coordinates that do not depend on the screen's size, on each axis."""
Fields = dict[str, JsonValue]


class BadCallError(ValueError):
    """A call without a valid action."""

    def __init__(self, message: str, error_type: ErrorType = "tool_arg") -> None:
        super().__init__(message[:MAX_ERROR_CHARACTERS])
        self.error_type: ErrorType = error_type


def read_json(text: str) -> JsonValue:
    """Parse JSON and check that the log can store it. Raises BadCallError."""
    try:
        content: JsonValue = json.loads(text)
        # A lone surrogate is valid JSON but not valid UTF-8, so no log could store it.
        json.dumps(content, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        message = f"the tool call is not JSON: {error}"
        raise BadCallError(message, "parse") from error
    if is_deeper(content, MAX_DEPTH):
        message = f"the tool call is nested more than {MAX_DEPTH} deep"
        raise BadCallError(message, "parse")
    return content


def no_call(text: str) -> TakenAction:
    """The error for a completion in which `CALL` matches nothing."""
    return parse_error("parse", f"no <tool_call>...</tool_call> in {text.strip()[:80]!r}")


def encode_call(tool: str, arguments: Fields) -> str:
    """Write a tool call as the chat template does."""
    call = json.dumps({"name": tool, "arguments": arguments}, ensure_ascii=False)
    return f"<tool_call>\n{call}\n</tool_call>"


def scaled(pixel: int, size_px: int, size: int = SCALE) -> int:
    """The pixel's middle in units of `size`, or the pixel itself if those are pixels."""
    return pixel if size == size_px else round((pixel + 0.5) * size / size_px)


def pixel_of(
    value: JsonValue, screen: tuple[int, int], size: tuple[int, int] = (SCALE, SCALE)
) -> tuple[int, int] | None:
    """The pixel that [x, y] in units of `size` refers to; None if it is no point of the screen."""
    if not isinstance(value, list) or len(value) != len(screen):
        return None
    found = []
    for part, pixels, most in zip(value, screen, size, strict=True):
        if isinstance(part, bool) or not isinstance(part, int | float) or not 0 <= part <= most:
            return None
        found.append(min(int(part * pixels // most), pixels - 1))
    return found[0], found[1]


def named_arguments(call: str, tools: Sequence[str]) -> tuple[str, Fields]:
    """The name, one of `tools`, and the arguments of a call in Qwen's form. Raises BadCallError."""
    content = read_json(call)
    fields: Fields = content if isinstance(content, dict) else {}
    name, arguments = fields.get("name"), fields.get("arguments")
    if not isinstance(name, str) or not isinstance(arguments, dict):
        message = f'a tool call is {{"name": ..., "arguments": {{...}}}}, not {call.strip()[:80]!r}'
        raise BadCallError(message, "parse")
    if name not in tools:
        message = f"unknown tool {name!r}; use {', '.join(tools)}"
        raise BadCallError(message, "tool_name")
    return name, arguments


def action_of(fields: Fields, width_px: int, height_px: int) -> Action:
    """Build the action with these fields.

    Raises ValidationError, and BadCallError for points off the screen.
    """
    action = ACTION.validate_json(json.dumps(fields))
    for x, y in _points(action):
        if not (x < width_px and y < height_px):
            message = f"({x}, {y}) is not on the screen of {width_px} x {height_px} pixels"
            raise BadCallError(message)
    return action


def _points(action: Action) -> Iterator[tuple[int, int]]:
    fields = action.model_dump()
    for one, other in (("x", "y"), ("to_x", "to_y")):
        if one in fields:
            yield fields[one], fields[other]
    yield from fields.get("path", ())


def taken(tool: str, arguments: Fields, read: Callable[[], Action]) -> TakenAction:
    """The call with the action that `read` returns, or with the error that it raises."""
    try:
        action = read()
    except BadCallError as error:
        return parse_error(error.error_type, str(error), tool, arguments)
    except ValidationError as error:
        first = error.errors()[0]
        is_unknown = first["type"] in {"union_tag_invalid", "union_tag_not_found"}
        place = ".".join(map(str, first["loc"]))
        message = f"{place}: {first['msg']}"[:MAX_ERROR_CHARACTERS]
        return parse_error("tool_name" if is_unknown else "tool_arg", message, tool, arguments)
    return TakenAction(tool_name=tool, tool_args=arguments, action=action)

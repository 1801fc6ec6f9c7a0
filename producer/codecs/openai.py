r"""The OpenAI codec: output items of the Responses API, `computer_call` and `function_call`.

    {"type": "computer_call", "action": {"type": "click", "x": 31, "y": 52, "button": "left"}}
    {"type": "function_call", "name": "swipe", "arguments": "{\"x\": 3, ...}"}

Coordinates are pixels. Actions that only a phone has are function calls, named as in
`schemas.actions`. A completion is one item or a list of items; messages and reasoning are skipped.
"""

import json
from typing import Final

from pydantic import JsonValue

from producer.codecs.codec import Codec, parse_error
from producer.codecs.json_calls import BadCallError, Fields, action_of, read_json, taken
from producer.thoughts import JSON_LITERAL
from schemas import actions
from schemas.actions import Action
from schemas.turn import TakenAction

NATIVE: Final = frozenset(
    {"click", "double_click", "drag", "keypress", "move", "screenshot", "scroll", "type", "wait"}
)
"""Action types of OpenAI's computer use."""
SKIPPED: Final = ("message", "reasoning")
"""Item types to skip. A tuple, because the type that a model writes may be an unhashable list."""
OPENAI_PROMPT: Final = """\
You operate a phone by its screenshots. Each turn you see the screen and answer with one JSON \
object and nothing else:
{"type": "computer_call", "action": {"type": ACTION, ...}}
Actions: click (x, y, button: "left"); double_click (x, y); scroll (x, y, scroll_x, scroll_y); \
type (text); keypress (keys: a list); wait; screenshot.
Or a call of a function, its arguments as a JSON text:
{"type": "function_call", "name": NAME, "arguments": "{...}"}
Functions: long_press (x, y); swipe (x, y, to_x, to_y); system_button (button: home, back, \
recents); open_app (package); answer (text); terminate (status: success or failure).
Coordinates are pixels of the screenshot, from the top left. \
Call terminate when the task is done or cannot be done."""
EXAMPLE: Final = '{"type": "computer_call", "action": {...}}'


class OpenAICodec(Codec):
    """The OpenAI codec; the format is described in the module. Stateless."""

    name = "openai"
    literals = JSON_LITERAL

    def encode(self, action: Action, width_px: int, height_px: int) -> str:  # noqa: ARG002  # required by the interface
        """Write the action as one item. Every action can be written."""
        return json.dumps(action_item(action), ensure_ascii=False)

    def parse_answer(self, answer: str, width_px: int, height_px: int) -> tuple[TakenAction, ...]:
        """Parse every call in the items."""
        try:
            items = _read_items(answer)
        except BadCallError as error:
            return (parse_error(error.error_type, str(error)),)
        calls = [item for item in items if item.get("type") not in SKIPPED]
        parsed = [taken for call in calls for taken in _parse_item(call, width_px, height_px)]
        return tuple(parsed) or (parse_error("parse", f"no call such as {EXAMPLE}"),)


def action_item(action: Action) -> Fields:
    """The output item for an action."""
    fields: Fields = action.model_dump(mode="json")
    match action:
        case actions.Drag(path=path):
            points: list[JsonValue] = [{"x": x, "y": y} for x, y in path]
            fields["path"] = points
        case actions.Wait(duration_s=1.0):
            del fields["duration_s"]
        case actions.Wait():
            return _function(action)
        case _ if action.type not in NATIVE:
            return _function(action)
        case _:
            pass
    return {"type": "computer_call", "action": fields}


def _function(action: Action) -> Fields:
    arguments = action.model_dump_json(exclude={"type"})
    return {"type": "function_call", "name": action.type, "arguments": arguments}


def _read_items(answer: str) -> list[Fields]:
    """The items of a completion. Raises BadCallError."""
    content = read_json(answer)
    items = content if isinstance(content, list) else [content]
    objects = [item for item in items if isinstance(item, dict)]
    if not objects or len(objects) < len(items):
        message = f"no call such as {EXAMPLE} in {answer.strip()[:80]!r}"
        raise BadCallError(message, "parse")
    return objects


def _parse_item(item: Fields, width_px: int, height_px: int) -> list[TakenAction]:
    kind = item.get("type")
    if kind == "function_call":
        return [_called(item, width_px, height_px)]
    if kind != "computer_call":
        return [_native(item, width_px, height_px)]
    several = item.get("actions")
    given = several if isinstance(several, list) and several else [item.get("action")]
    return [
        _native(item, width_px, height_px)
        if isinstance(item, dict)
        else parse_error("parse", f"a computer_call has an action, not {str(item)[:80]!r}")
        for item in given
    ]


def _native(fields: Fields, width_px: int, height_px: int) -> TakenAction:
    kind = fields.get("type")

    def read() -> Action:
        if not isinstance(kind, str) or kind not in NATIVE:
            message = f"unknown action {kind!r}; use one of {', '.join(sorted(NATIVE))}"
            raise BadCallError(message, "tool_name")
        given: Fields = {name: value for name, value in fields.items() if value is not None}
        if kind != "keypress" and given.get("keys") == []:
            del given["keys"]
        path = given.get("path")
        if isinstance(path, list):
            given["path"] = [
                [point.get("x"), point.get("y")] if isinstance(point, dict) else point
                for point in path
            ]
        return action_of(given, width_px, height_px)

    return taken(str(kind), fields, read)


def _called(item: Fields, width_px: int, height_px: int) -> TakenAction:
    name, given = item.get("name"), item.get("arguments")
    try:
        arguments = read_json(given) if isinstance(given, str) else given
    except BadCallError as error:
        return parse_error(error.error_type, str(error), str(name))
    if not isinstance(arguments, dict):
        message = f"arguments must be a JSON object, not {str(given)[:80]!r}"
        return parse_error("tool_arg", message, str(name))
    fields: Fields = {**arguments, "type": name}
    return taken(str(name), arguments, lambda: action_of(fields, width_px, height_px))

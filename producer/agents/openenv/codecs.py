"""Codecs for policies without a screen: plain text, or one action as JSON."""

import json
from typing import Final

from pydantic import JsonValue

from producer.codecs.codec import Codec, cannot_encode, parse_error
from producer.codecs.json_calls import BadCallError, action_of, read_json, taken
from producer.thoughts import JSON_LITERAL
from schemas.actions import Action, Answer, Type
from schemas.turn import TakenAction

TEXT_PROMPT: Final = """\
You act in an environment that answers in words. Whatever you write is sent to it as your action, \
so write the action and nothing else."""
JSON_PROMPT: Final = """\
You act in an environment that answers in words. Write one action a turn as a JSON object, such as \
{"type": "execute_sql", "sql": "SELECT 1"} or {"type": "type", "text": "hello"}. To give your \
answer: {"type": "answer", "text": "42"}. To end: {"type": "terminate", "status": "success"}."""
NO_SCREEN_PX: Final = 2**31
"""So large that every point is on the screen."""


class TextCodec(Codec):
    """The whole completion is the action's text. Stateless."""

    name = "text"

    def encode(self, action: Action, width_px: int, height_px: int) -> str:  # noqa: ARG002  # required by the interface
        """The text that the action types or answers. Raises CannotEncodeError."""
        match action:
            case Type(text=text) | Answer(text=text) if text.strip():
                return self.readable(text, action)
            case _:
                return cannot_encode(self.name, action)

    def parse_answer(self, answer: str, width_px: int, height_px: int) -> tuple[TakenAction, ...]:  # noqa: ARG002  # required by the interface
        """The text, stripped, or one `parse` error."""
        said = answer.strip()
        if not said:
            return (parse_error("parse", "the completion is empty"),)
        return (TakenAction(tool_name="text", tool_args={"text": said}, action=Type(text=said)),)


class JsonActionCodec(Codec):
    """The first JSON object of a completion is the action. Stateless."""

    name = "json_action"
    literals = JSON_LITERAL

    def encode(self, action: Action, width_px: int, height_px: int) -> str:  # noqa: ARG002  # required by the interface
        """Write the action's fields as JSON."""
        return json.dumps(action.model_dump(mode="json"), ensure_ascii=False)

    def parse_answer(self, answer: str, width_px: int, height_px: int) -> tuple[TakenAction, ...]:  # noqa: ARG002  # required by the interface
        """The action, or one error."""
        try:
            fields = _first_object(answer)
        except BadCallError as error:
            return (parse_error(error.error_type, str(error)),)
        tool = str(fields.get("type", ""))
        arguments = {name: value for name, value in fields.items() if name != "type"}
        return (taken(tool, arguments, lambda: action_of(fields, NO_SCREEN_PX, NO_SCREEN_PX)),)


def _first_object(text: str) -> dict[str, JsonValue]:
    begin = text.find("{")
    if begin < 0:
        message = "there is no JSON object"
        raise BadCallError(message, "parse")
    try:
        _, end = json.JSONDecoder().raw_decode(text, begin)
    except (ValueError, RecursionError):
        end = len(text)
    fields = read_json(text[begin:end])
    assert isinstance(fields, dict)  # noqa: S101  # it begins with a brace
    return fields

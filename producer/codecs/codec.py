"""The Codec interface: converts a policy's text to actions, and back."""

from abc import ABC, abstractmethod
from typing import Literal, NamedTuple, NoReturn, final

from pydantic import JsonValue

from producer.bounded_text import storable
from producer.thoughts import hide_thoughts
from schemas.actions import Action
from schemas.turn import TakenAction

ErrorType = Literal["parse", "tool_name", "tool_arg"]


CONTEXT_FULL = "context_full"
"""`tool_name` of the only action of a turn whose prompt exceeds the policy's context. It ends the
episode."""


ONLY_THOUGHT = "there is only a thought and no answer after it"


class CannotEncodeError(ValueError):
    """The format cannot express the action."""


class Codec(ABC):
    """The format of one model family. Stateless.

    Only `parse` reads what a policy wrote, so that no format takes a thought for a call.
    """

    name: str
    """Name of the format: `compact`, `qwen`."""
    literals: str | None = None
    """Matches parts of an answer that may quote the tags of a thought (`producer.thoughts`), if
    any."""

    @abstractmethod
    def encode(self, action: Action, width_px: int, height_px: int) -> str:
        """Write the action as text, for a screen of this size. Raises CannotEncodeError."""

    @abstractmethod
    def parse_answer(self, answer: str, width_px: int, height_px: int) -> tuple[TakenAction, ...]:
        """The actions of a completion without thoughts, in the form of `parse`.

        Raises ValueError.
        """

    @final
    def readable(self, written: str, action: Action) -> str:
        """Return `written` if no part of it reads as a thought.

        Raises CannotEncodeError otherwise.
        """
        if hide_thoughts(written, self.literals) != written:
            cannot_encode(self.name, action)
        return written

    @final
    def parse(self, text: str, width_px: int, height_px: int) -> tuple[TakenAction, ...]:
        """Parse the actions of a completion, in order; at least one. Raises nothing.

        Thoughts are not read. A call that cannot be parsed has an `error_type`: `parse` (no call
        found), `tool_name` (unknown tool) or `tool_arg` (wrong arguments). Whatever the text is, an
        event with these actions can be written and read back.
        """
        said = storable(text)
        answer = hide_thoughts(said, self.literals)
        if answer.isspace() and not said.isspace():
            return (parse_error("parse", ONLY_THOUGHT),)
        try:
            return self.parse_answer(answer, width_px, height_px)
        except (ValueError, RecursionError) as error:  # pydantic's errors are ValueErrors
            message = f"the call cannot be read: {type(error).__name__}"
            return (parse_error("parse", message),)


class Format(NamedTuple):
    """A codec and the system prompt that explains it."""

    codec: Codec
    system_prompt: str | None
    """None for a policy that was trained to know its actions."""


def parse_error(
    error_type: ErrorType,
    message: str,
    tool_name: str = "",
    tool_args: dict[str, JsonValue] | None = None,
) -> TakenAction:
    """Represent a call that could not be parsed."""
    return TakenAction(
        tool_name=tool_name,
        tool_args=tool_args or {},
        action=None,
        error_type=error_type,
        error_message=message,
    )


def cannot_encode(codec: str, action: Action) -> NoReturn:
    """Raise CannotEncodeError for this action."""
    message = f"codec {codec} cannot express the action {action.type}"
    raise CannotEncodeError(message)

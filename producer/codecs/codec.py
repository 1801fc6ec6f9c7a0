"""The Codec interface: text of a policy to actions, and back."""

from typing import Literal, NamedTuple, NoReturn, Protocol

from pydantic import JsonValue

from schemas.actions import Action
from schemas.turn import TakenAction

ErrorType = Literal["parse", "tool_name", "tool_arg"]


CONTEXT_FULL = "context_full"
"""`tool_name` of the only action of a turn whose prompt the policy cannot take; it ends the
episode."""


class CannotEncodeError(ValueError):
    """The format cannot express the action."""


class Codec(Protocol):
    """The format of one family of policies. Stateless."""

    name: str
    """Name of the format: `compact`, `qwen`."""

    def encode(self, action: Action, width_px: int, height_px: int) -> str:
        """The action as text, for a screen of this size. CannotEncodeError."""
        ...

    def parse(self, text: str, width_px: int, height_px: int) -> tuple[TakenAction, ...]:
        """The actions of a completion, in order; at least one. Raises nothing.

        A call that cannot be parsed has an `error_type`: `parse` (no call found), `tool_name`
        (unknown tool) or `tool_arg` (wrong arguments).
        """
        ...


class Format(NamedTuple):
    """A codec, and the system prompt that explains it."""

    codec: Codec
    system_prompt: str | None
    """None for a policy that was trained to know its actions."""


def parse_error(
    error_type: ErrorType,
    message: str,
    tool_name: str = "",
    tool_args: dict[str, JsonValue] | None = None,
) -> TakenAction:
    """A call that could not be parsed."""
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

"""The interface Codec: from what a policy writes to actions, and back.

It knows no device and no policy, only text and pixels.
"""

from typing import Literal, NoReturn, Protocol

from pydantic import JsonValue

from schemas.actions import Action
from schemas.turn import TakenAction

ErrorType = Literal["parse", "tool_name", "tool_arg"]


class CannotEncodeError(ValueError):
    """This policy's language has no words for the action."""


class Codec(Protocol):
    """How one family of policies writes actions. Stateless."""

    name: str
    """`compact`, `qwen`."""

    def encode(self, action: Action, width_px: int, height_px: int) -> str:
        """The action as this policy would write it, on a screen of this size. CannotEncodeError."""
        ...

    def parse(self, text: str, width_px: int, height_px: int) -> tuple[TakenAction, ...]:
        """What a completion asks for, in order.

        Never raises, never empty: what cannot be understood has an `error_type`.

        `parse`: no call can be read; `tool_name`: there is no such tool; `tool_arg`: the tool is
        there, its arguments are wrong.
        """
        ...


def not_understood(
    error_type: ErrorType,
    message: str,
    tool_name: str = "",
    tool_args: dict[str, JsonValue] | None = None,
) -> TakenAction:
    """A call that could not be turned into an action."""
    return TakenAction(
        tool_name=tool_name,
        tool_args=tool_args or {},
        action=None,
        error_type=error_type,
        error_message=message,
    )


def cannot_encode(language: str, action: Action) -> NoReturn:
    """Raise CannotEncodeError for this action."""
    message = f"{language} has no words for {action.type}"
    raise CannotEncodeError(message)

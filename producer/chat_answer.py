"""What a server answers: the models it has, a completion, or why there is none."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from pydantic import JsonValue

SHOWN_MODELS: Final = 8


class ListedModel(NamedTuple):
    """A row of what a server lists."""

    id: str
    """Its name in requests."""
    root: str | None = None
    """The folder or hub id that it was loaded from, as vLLM and `cua-train serve` say."""
    owner: str | None = None
    """`owned_by`: the make of a server of one's own, such as vllm or sglang."""


def id_of(name: str, listed: Sequence[ListedModel]) -> str | None:
    """The name in requests of the model of this name, folder or hub id; None: there is none."""
    if any(model.id == name for model in listed):
        return name
    return next((model.id for model in listed if model.root == name), None)


def listed_names(listed: Sequence[ListedModel]) -> str:
    """Their names in requests, for a message; the first few of many."""
    return ", ".join(model.id for model in listed[:SHOWN_MODELS])


class ChatAnswer(NamedTuple):
    """A completion, without the key."""

    text: str
    model: str | None
    """As the server names it."""
    content: dict[str, JsonValue]
    """The whole response, the key in it included if the server repeats it."""


class ChatFailedError(Exception):
    """The server gave no usable answer. The message does not contain the key."""

    def __init__(
        self, message: str, status: int | None = None, *, is_transient: bool = False
    ) -> None:
        """`status`: of the HTTP error; None: there was none. `is_transient`: away or busy."""
        super().__init__(message)
        self.status = status
        self.is_transient = is_transient

    def named(self, server: str) -> "ChatFailedError":
        """The same, with the server's name before it."""
        return ChatFailedError(f"{server}: {self}", self.status, is_transient=self.is_transient)


class UnreadableAnswerError(Exception):
    """The answer has the wrong form; the next one may have the right one."""


class AnswerTooLongError(UnreadableAnswerError):
    """The answer has more bytes than are read."""

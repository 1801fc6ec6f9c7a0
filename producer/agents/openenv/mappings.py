"""How actions are sent to a server: the mappings that `env_actions` selects by name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from producer.agents.environment_server import ActionsName
from producer.agents.openenv.browser_calls import browser_call
from producer.agents.openenv.observations import GOAL, WORDS
from producer.environments.environment import ActionRefusedError
from schemas.actions import Action, Answer, Terminate, Type, Wait

TASK_NAME: Final = "task_name"
"""BrowserGym's name for the task argument of `reset`."""
Message = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class ActionMapping:
    """How actions are sent to a server, and how its observations are read."""

    encode: Callable[[Action], Message]
    """Converts an action to a message. Raises ActionRefusedError if the server does not support
    it."""
    is_text: bool
    """Whether completions are sent verbatim."""
    probe: Action
    """An action that does little or nothing on a server that takes these actions."""
    hears_the_end: bool = False
    """Whether the server must be told that the agent ends the episode."""
    task_argument: str = "task_id"
    """Argument of the server's `reset` that selects the task."""
    words: tuple[str, ...] = WORDS
    """Observation fields with text that is shown to the policy."""


def _text_as(field: str, task_argument: str = "task_id") -> ActionMapping:
    def encode(action: Action) -> Message:
        match action:
            case Type(text=text) | Answer(text=text):
                return {field: text}
            case _:
                message = f"the server takes text, not {action.type}"
                raise ActionRefusedError(message)

    return ActionMapping(
        encode, is_text=True, probe=Type(text="hello"), task_argument=task_argument
    )


def _as_json(action: Action) -> Message:
    return action.model_dump(mode="json")


def _as_browser_call(action: Action) -> Message:
    return {"action_str": browser_call(action)}


MAPPINGS: Final[dict[ActionsName, ActionMapping]] = {
    "computer": ActionMapping(
        _as_json,
        is_text=False,
        probe=Wait(duration_s=0),
        hears_the_end=True,
    ),
    "browsergym": ActionMapping(
        _as_browser_call,
        is_text=False,
        probe=Wait(duration_s=0),
        task_argument=TASK_NAME,
        words=(GOAL, "error"),  # `text` is the page's tree, whose elements have no coordinates
    ),
    "text": _text_as("message"),
    "action_str": _text_as("action_str", TASK_NAME),
    "answer": _text_as("answer"),
    "code": _text_as("code"),
}
"""Maps a name to its mapping."""


def last_words(mapping: ActionMapping, actions: list[Action]) -> list[Message]:
    """Messages to send before the verdict.

    The agent's answers and, if the server wants to be told, the end of the episode.
    """
    said = [action for action in actions if isinstance(action, Answer)]
    ends = [action for action in actions if isinstance(action, Terminate)]
    messages = [mapping.encode(action) for action in said]
    if mapping.hears_the_end:
        messages.append(mapping.encode(ends[-1] if ends else Terminate(status="failure")))
    return messages

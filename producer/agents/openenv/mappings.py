"""How actions are sent to a server: the mappings of `env_actions`, by name."""

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
"""BrowserGym's argument."""
Message = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class ActionMapping:
    """One mapping."""

    encode: Callable[[Action], Message]
    """ActionRefusedError for an action that the server does not support."""
    is_text: bool
    """Whether completions are sent as they are written."""
    probe: Action
    """An action that does little or nothing on a server that takes these actions."""
    hears_the_end: bool = False
    """Whether the server wants to be told that the agent ends the episode."""
    task_argument: str = "task_id"
    """Of the server's `reset`: which task."""
    words: tuple[str, ...] = WORDS
    """Fields of an observation that are shown."""


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
        words=(GOAL, "error"),  # the text is the page's tree, of elements that have no coordinates
    ),
    "text": _text_as("message"),
    "action_str": _text_as("action_str", TASK_NAME),
    "answer": _text_as("answer"),
    "code": _text_as("code"),
}
"""Name -> mapping."""


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

"""Which turns a prompt shows, and the episode as messages of a chat. Imports no torch."""

from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from pydantic import JsonValue

from producer.environments.environment import Screenshot
from producer.errors import UsageError
from producer.policy.policy import SampleRequest, Turn


def anchor_of(history: Sequence[Turn]) -> int:
    """Index of the first turn shown in the last turn's prompt; 0 if no turn has tokens."""
    for index in range(len(history) - 1, -1, -1):
        tokens = history[index].completion.tokens
        if tokens is not None and tokens.prompt_extends is None:
            return max(0, index + 1 - tokens.num_prompt_images)
    return 0


def next_anchor(anchor: int, num_turns: int, max_recent_turns: int | None) -> int:
    """Index of the first turn shown in the prompt after `num_turns` turns; `num_turns` if none is.

    Shows N to 2N - 1 past turns, where N is `max_recent_turns`, or all of them as long as there are
    fewer than N. None shows all.
    """
    if max_recent_turns is None or num_turns - anchor < 2 * max_recent_turns:
        return anchor
    return num_turns - max_recent_turns


def anchors_of_shorter_prompts(anchor: int, num_turns: int) -> Sequence[int]:
    """First turns to try when a prompt is too long, in order of preference.

    At least half of the past turns are dropped, or else the next prompt would be too long again.
    """
    return range(anchor + (num_turns - anchor + 1) // 2, num_turns + 1)


MAX_SEED: Final = 2**31
"""Upper bound of seeds: servers take a signed 32-bit integer."""


class PromptTooLongError(UsageError):
    """The prompt and its completion exceed the policy's context."""


@dataclass(frozen=True, slots=True)
class PromptLimits:
    """What a prompt may show."""

    max_recent_turns: int | None = None
    """See `next_anchor`."""
    max_context_tokens: int | None = None
    """Maximum tokens of a prompt with its completion; None means no limit."""


class Sized(Protocol):
    """A prompt whose length is known."""

    @property
    def num_tokens(self) -> int:
        """Number of tokens of the whole prompt."""
        ...


PromptT = TypeVar("PromptT", bound=Sized)


def fitting_prompt(
    request: SampleRequest,
    limits: PromptLimits,
    extended: Callable[[], PromptT],
    anchored: Callable[[int], PromptT],
) -> PromptT:
    """The request's prompt; if it would be too long, its oldest turns are dropped.

    `extended` returns the prompt that extends the last turn's; `anchored` returns the whole prompt
    starting at a turn (from 0). Raises PromptTooLongError if the screen alone is too long or,
    without screens, if the prompt is.
    """
    num_turns, sees_screen = len(request.history), request.screenshot is not None
    before = anchor = anchor_of(request.history)
    # Without screens every turn is kept, because a turn does not repeat earlier observations.
    if sees_screen:
        anchor = next_anchor(before, num_turns, limits.max_recent_turns)
    prompt = extended() if anchor == before else anchored(anchor)
    most = limits.max_context_tokens
    left = iter(anchors_of_shorter_prompts(anchor, num_turns) if sees_screen else ())
    while most is not None and prompt.num_tokens + request.max_tokens > most:
        if (shorter := next(left, None)) is None:
            what = "instruction and screen have" if sees_screen else "the prompt has"
            message = (
                f"the policy takes {most:,} tokens, but {what} {prompt.num_tokens:,} and max_tokens"
                f" is {request.max_tokens:,}; choose a smaller max_tokens or another policy"
            )
            raise PromptTooLongError(message)
        prompt = anchored(shorter)
    return prompt


def chat_messages(
    request: SampleRequest, system_prompt: str | None, max_recent_turns: int | None
) -> list[JsonValue]:
    """The dialogue: the task with the first turn shown, then screenshots and answers."""
    messages: list[JsonValue] = []
    if system_prompt is not None:
        messages.append({"role": "system", "content": system_prompt})
    start = 0 if max_recent_turns is None else max(0, len(request.history) - max_recent_turns)
    after_description = request.text_after_description(start)
    first = "\n\n".join(filter(None, (request.task.description, after_description)))
    texts = [first, *request.texts[start + 1 :]]
    for turn, text in zip(request.history[start:], texts, strict=False):
        messages.append(_user_message(text, turn.screenshot))
        messages.append({"role": "assistant", "content": turn.completion.text})
    messages.append(_user_message(texts[-1], request.screenshot))
    return messages


def _user_message(text: str | None, screenshot: Screenshot | None) -> JsonValue:
    content: list[JsonValue] = []
    if text is not None:
        content.append({"type": "text", "text": text})
    if screenshot is not None:
        url = f"data:image/png;base64,{b64encode(screenshot.png).decode()}"
        content.append({"type": "image_url", "image_url": {"url": url}})
    return {"role": "user", "content": content}

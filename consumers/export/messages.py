"""Episodes as input items of the OpenAI Responses API, and back.

A turn is a user message (`input_text` on the first turn, `input_image` for the screenshot) and an
assistant message (`output_text`, the completion). Pure: images are the URLs that they are named by.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

from consumers.errors import UsageError

Item = dict[str, Any]
CALLS = ("computer_call", "function_call")
OUTPUTS = ("computer_call_output", "function_call_output")


@dataclass(frozen=True, slots=True)
class Exchange:
    """What the agent was shown, and what it answered."""

    text: str | None
    """The instruction on the first turn, and the environment's text; None: there is none."""
    image_url: str | None
    """Of the screenshot: a data URL, or `blob:sha256:...`; None: text alone."""
    response: str | None
    """The completion; None: it has not answered yet."""


def to_items(exchanges: Sequence[Exchange]) -> list[Item]:
    """The items, oldest first."""
    items: list[Item] = []
    for exchange in exchanges:
        content: list[Item] = []
        if exchange.text is not None:
            content.append({"type": "input_text", "text": exchange.text})
        if exchange.image_url is not None:
            content.append(
                {"type": "input_image", "image_url": exchange.image_url, "detail": "auto"}
            )
        items.append({"type": "message", "role": "user", "content": content})
        if exchange.response is not None:
            answer = {"type": "output_text", "text": exchange.response, "annotations": []}
            items.append({"type": "message", "role": "assistant", "content": [answer]})
    return items


def from_items(items: Sequence[Item]) -> list[Exchange]:
    """The exchanges that items of a conversation with the API are. UsageError for others.

    Texts of one side in a row are one text. Calls are responses, as the JSON of their item, and
    their outputs are what is shown next; reasoning is left out.
    """
    exchanges: list[Exchange] = []
    text: list[str] = []
    image: str | None = None
    answers: list[str] = []

    def take() -> None:
        nonlocal text, image, answers
        if text or image is not None or answers:
            response = "\n".join(answers) if answers else None
            exchanges.append(Exchange("\n".join(text) if text else None, image, response))
        text, image, answers = [], None, []

    for place, item in enumerate(items):
        for is_shown, kind, value in _parts(item, place):
            if is_shown and (answers or (kind == "image" and image is not None)):
                take()
            if not is_shown:
                answers.append(value)
            elif kind == "image":
                image = value
            else:
                text.append(value)
    take()
    return exchanges


def _parts(item: Item, place: int) -> Iterator[tuple[bool, str, str]]:
    """(whether it is shown to the agent, text or image, the text or URL)."""
    kind = item.get("type", "message") if isinstance(item, dict) else None
    if kind == "reasoning":
        return
    if kind in CALLS:
        yield False, "text", to_json(item).decode()
        return
    parts: Any
    if kind in OUTPUTS:
        output = item.get("output")
        parts = [{"type": "input_text", "text": output}] if isinstance(output, str) else [output]
        is_shown = True
    elif kind == "message":
        content = item.get("content")
        is_shown = item.get("role") != "assistant"
        parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
    else:
        message = f"item {place} has the unknown type {kind!r}; use messages and calls"
        raise UsageError(message)
    for part in parts if isinstance(parts, list) else [None]:
        yield is_shown, *_part(part, place)


def _part(part: Any, place: int) -> tuple[str, str]:  # noqa: ANN401  # JSON of other programs
    match part:
        case {"type": "input_text" | "output_text" | "text", "text": str() as text}:
            return "text", text
        case {"type": "refusal", "refusal": str() as text}:
            return "text", text
        case {"type": "input_image" | "computer_screenshot", "image_url": str() as url}:
            return "image", url
        case _:
            message = (
                f"item {place} has content that is neither text nor an image by URL:"
                f" {str(part)[:80]!r}"
            )
            raise UsageError(message)

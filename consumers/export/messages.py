"""Episodes as input items of the OpenAI Responses API.

A turn is a user message (`input_text` on the first turn, `input_image` for the screenshot) and an
assistant message (`output_text`, the completion). Pure: images are the URLs that they are named by.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Item = dict[str, Any]


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

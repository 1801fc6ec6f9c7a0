"""How many bytes a server's answer to a training request may have: tokens and log-probs with it.

The limit keeps a broken server from filling the memory; it must not cut what was asked for.
"""

from typing import Final

from pydantic import JsonValue

from producer.chat_endpoint import MAX_ANSWER_BYTES

COMPLETION_TOKEN_BYTES: Final = 2048
"""Of JSON per completion token: its id, text and log-prob entry are some 260 bytes for a short word
in a chat of vLLM's, top log-prob included, and 1,550 for the longest tokens (128 spaces)."""
PROMPT_TOKEN_BYTES: Final = 12
"""Of an id below 10 million in a list, blanks and a line's end included."""
IMAGE_TOKENS: Final = 16_384
"""Largest number that a Qwen processor makes of one image by default."""


def max_answer_bytes(body: dict[str, JsonValue]) -> int:
    """For a request with `max_tokens` and either a `prompt` of token ids or `messages`."""
    max_tokens = body.get("max_tokens")
    num_tokens = max_tokens if isinstance(max_tokens, int) else 0
    num_prompt = _num_prompt_tokens(body)
    return MAX_ANSWER_BYTES + COMPLETION_TOKEN_BYTES * num_tokens + PROMPT_TOKEN_BYTES * num_prompt


def _num_prompt_tokens(content: JsonValue) -> int:
    """At most: a token has a byte of text at least. A template's own are within the allowance."""
    match content:
        case {"prompt": [*tokens]}:
            return len(tokens)
        case {"messages": [*messages]}:
            return sum(_num_prompt_tokens(message) for message in messages)
        case {"content": str(text)} | {"text": str(text)}:
            return len(text.encode())
        case {"content": [*parts]}:
            return sum(_num_prompt_tokens(part) for part in parts)
        case {"image_url": _}:
            return IMAGE_TOKENS
        case _:
            return 0

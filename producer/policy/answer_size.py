"""Limits the size of a server's answer to a training request, with its tokens and log-probs.

The limit keeps a broken server from filling the memory; it must not cut off a valid answer.
"""

from typing import Final

from pydantic import JsonValue

from producer.chat_endpoint import MAX_ANSWER_BYTES

COMPLETION_TOKEN_BYTES: Final = 2048
"""Bytes of JSON per completion token. The id, text and log-prob entry take some 260 bytes for a
short word in a vLLM chat, top log-prob included, and 1,550 for the longest tokens (128 spaces)."""
PROMPT_TOKEN_BYTES: Final = 12
"""Bytes per prompt token: an id below 10 million in a list, with blanks and a line end."""
IMAGE_TOKENS: Final = 16_384
"""Largest number of tokens a Qwen processor makes of one image by default."""


def max_answer_bytes(body: dict[str, JsonValue]) -> int:
    """Limit in bytes for a request with `max_tokens` and a `prompt` of token ids or `messages`."""
    max_tokens = body.get("max_tokens")
    num_tokens = max_tokens if isinstance(max_tokens, int) else 0
    num_prompt = _num_prompt_tokens(body)
    return MAX_ANSWER_BYTES + COMPLETION_TOKEN_BYTES * num_tokens + PROMPT_TOKEN_BYTES * num_prompt


def _num_prompt_tokens(content: JsonValue) -> int:
    """Upper bound: each token has at least one byte of text. Template tokens count as allowance."""
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

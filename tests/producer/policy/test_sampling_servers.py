"""What a server samples is read whole, however long; a longer answer is not asked for again."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pydantic import JsonValue

from producer.chat_answer import ChatFailedError
from producer.chat_endpoint import MAX_ANSWER_BYTES
from producer.policy.answer_size import max_answer_bytes
from producer.policy.sampling_servers import SamplingServers, ServerRequest, TokenAnswer
from tests.support.chat_server import ChatServer

ADAPTER = "cua-0123456789abcdef"


def body_of(max_tokens: int) -> dict[str, JsonValue]:
    messages: list[JsonValue] = [{"role": "user", "content": "Open the settings"}]
    return {"messages": messages, "logprobs": True, "max_tokens": max_tokens, "seed": 3}


def chat_answer(num_tokens: int, word: str = " settings") -> bytes:
    """As vLLM writes it."""
    entry = {"token": word, "logprob": -0.12345678901234567, "bytes": [*word.encode()]}
    choice: dict[str, Any] = {
        "message": {"content": word * num_tokens},
        "finish_reason": "length",
        "token_ids": [123456] * num_tokens,
        "logprobs": {"content": [entry | {"top_logprobs": [entry]}] * num_tokens},
    }
    ids = [123456] * 50
    return json.dumps({"model": ADAPTER, "choices": [choice], "prompt_token_ids": ids}).encode()


def complete(server: ChatServer, max_tokens: int, folder: Path) -> TokenAnswer | ChatFailedError:
    servers = SamplingServers([server.url], "policy", None, folder, timeout_s=30.0)
    servers.use(ADAPTER)
    request = ServerRequest(UUID(int=1), body_of(max_tokens), "/chat/completions")
    (result,) = servers.complete([request])
    return result


@pytest.mark.parametrize("word", [" settings", " " * 128, "\n"])
def test_a_completion_of_many_tokens_comes_with_every_log_prob(
    server: ChatServer, tmp_path: Path, word: str
) -> None:
    body = chat_answer(20_000 if len(word) < 100 else 2_000, word)
    assert len(body) > MAX_ANSWER_BYTES
    server.answers.append((200, {}, body))
    num_tokens = 20_000 if len(word) < 100 else 2_000
    result = complete(server, num_tokens, tmp_path)
    assert isinstance(result, TokenAnswer), result
    assert len(result.tokens) == len(result.logprobs) == num_tokens
    assert len(server.requests) == 1


def test_an_answer_of_more_than_was_asked_for_fails_its_request_at_once(
    server: ChatServer, tmp_path: Path
) -> None:
    server.answers.append((200, {}, chat_answer(20_000)))
    result = complete(server, 8, tmp_path)
    assert f"has more than {max_answer_bytes(body_of(8))} bytes" in str(result)
    assert len(server.requests) == 1


def test_the_limit_grows_with_the_completion_the_prompt_and_its_images() -> None:
    assert max_answer_bytes({}) == MAX_ANSWER_BYTES
    assert max_answer_bytes({"prompt": [1, 2, 3], "max_tokens": 5}) == (
        MAX_ANSWER_BYTES + 5 * 2048 + 3 * 12
    )
    user: list[JsonValue] = [
        {"type": "text", "text": "né"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]
    messages: list[JsonValue] = [
        {"role": "user", "content": user},
        {"role": "assistant", "content": "ok"},
    ]
    # Three bytes of text, two of text, and an image of at most 16,384 tokens.
    assert max_answer_bytes({"messages": messages}) == MAX_ANSWER_BYTES + 12 * (3 + 2 + 16_384)

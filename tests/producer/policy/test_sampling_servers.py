"""A server's adapters, by its make; what it samples is read whole, but no longer than asked for."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pydantic import JsonValue

from producer.chat_answer import ChatFailedError
from producer.chat_endpoint import MAX_ANSWER_BYTES
from producer.errors import UsageError
from producer.policy.answer_size import max_answer_bytes
from producer.policy.sampling_servers import SamplingServers, ServerRequest
from producer.policy.token_answer import TokenAnswer
from tests.support.chat_server import ChatServer
from tests.support.sglang_front import SglangFront, sglang_front

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
    server.models = ["policy"]
    servers = servers_at(server.url, folder)
    servers.use(ADAPTER)
    return ask(servers, max_tokens)


def servers_at(url: str, folder: Path, timeout_s: float = 30.0) -> SamplingServers:
    return SamplingServers([url], "policy", None, folder, timeout_s=timeout_s)


def ask(servers: SamplingServers, max_tokens: int = 2) -> TokenAnswer | ChatFailedError:
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


def weights(sha256: str) -> Callable[[Path], str]:
    """Writes an adapter with this hash of its weights."""

    def save(folder: Path) -> str:
        (folder / "adapter_config.json").write_text('{"target_modules": ["q_proj"]}')
        return sha256

    return save


@pytest.fixture
def sglang(server: ChatServer) -> Iterator[SglangFront]:
    """A server with SGLang's interface of the policy `policy`; answers with two tokens."""
    server.models = ["policy"]
    server.answers = [(200, {}, chat_answer(2))]
    with sglang_front(server.url) as front:
        yield front


def test_sglang_is_recognised_and_samples_with_each_adapter_in_turn(
    server: ChatServer, sglang: SglangFront, tmp_path: Path
) -> None:
    servers = servers_at(sglang.url, tmp_path)
    servers.check()
    for sha256 in ("a" * 64, "b" * 64):
        servers.publish(weights(sha256))
        result = ask(servers)
        assert isinstance(result, TokenAnswer), result
        assert (result.tokens, result.prompt_tokens) == ((123456,) * 2, (123456,) * 50)
        assert result.logprobs == (-0.12345678901234567,) * 2
        assert server.requests[-1]["model"] == result.model == servers.adapter
        assert sglang.adapters == {servers.adapter: str(tmp_path / servers.adapter)}
    servers.publish(weights("b" * 64))
    assert isinstance(ask(servers), TokenAnswer), "it had been loaded already"


def test_a_prompt_of_tokens_is_read_from_sglang_as_from_vllm(
    server: ChatServer, sglang: SglangFront, tmp_path: Path
) -> None:
    choice: dict[str, object] = {"text": " a", "finish_reason": "stop", "token_ids": [7, 2]}
    choice |= {"prompt_token_ids": [1, 5], "logprobs": {"token_logprobs": [-0.5, -0.25]}}
    server.answers = [(200, {}, json.dumps({"model": ADAPTER, "choices": [choice]}).encode())]
    sglang.adapters[ADAPTER] = "/adapters"
    servers = servers_at(sglang.url, tmp_path)
    servers.use(ADAPTER)
    body: dict[str, JsonValue] = {"prompt": [1, 5], "logprobs": 1, "max_tokens": 2}
    (result,) = servers.complete([ServerRequest(UUID(int=1), body, "/completions")])
    assert result == TokenAnswer(" a", (1, 5), (7, 2), (-0.5, -0.25), "stop", ADAPTER)


def test_a_restarted_sglang_gets_the_adapter_again(sglang: SglangFront, tmp_path: Path) -> None:
    servers = servers_at(sglang.url, tmp_path)
    servers.check()
    servers.publish(weights("a" * 64))
    sglang.adapters.clear()
    assert isinstance(ask(servers), TokenAnswer)
    assert [*sglang.adapters] == [servers.adapter]


def test_a_worker_never_samples_from_sglang_without_the_adapter(
    server: ChatServer, sglang: SglangFront, tmp_path: Path
) -> None:
    """It publishes nothing itself, and SGLang would sample from the policy alone."""
    sglang.adapters[ADAPTER] = "/adapters"
    servers = servers_at(sglang.url, tmp_path)
    servers.use(ADAPTER)
    assert isinstance(ask(servers), TokenAnswer)
    assert server.requests[-1]["model"] == ADAPTER

    server.models = None
    unlisted = servers_at(server.url, tmp_path, timeout_s=1.0)
    unlisted.use(ADAPTER)
    num_requests = len(server.requests)
    assert "does not list its models" in str(ask(unlisted))
    assert len(server.requests) == num_requests


def test_an_adapter_that_sglang_refuses_is_an_error_that_names_its_flags(
    server: ChatServer, sglang: SglangFront, tmp_path: Path
) -> None:
    server.answers = [(400, {}, b"rank 64 is incompatible with the current LoRA memory pool")]
    servers = servers_at(sglang.url, tmp_path)
    servers.check()
    message = "rank 64 is incompatible .*; SGLang needs --enable-lora, a --max-lora-rank"
    with pytest.raises(UsageError, match=message):
        servers.publish(weights("a" * 64))

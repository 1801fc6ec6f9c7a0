"""Requests to an OpenAI-compatible server: retries, time limit, refused fields and the key."""

import json
import socket
import threading
from contextlib import suppress
from time import monotonic

import pytest
from httpx2 import Response
from pydantic import JsonValue

from producer.chat_answer import ChatAnswer, ChatFailedError, UnreadableAnswerError
from producer.chat_endpoint import MAX_ANSWER_BYTES, ChatEndpoint
from producer.errors import UnreachableError, UsageError
from tests.support.chat_server import ChatServer, chat_server

KEY = "sk-of-the-test"
BODY: dict[str, JsonValue] = {"model": "m", "messages": [], "temperature": 0, "max_tokens": 9}


def text_of(answer: ChatAnswer) -> str:
    if not answer.text:
        message = "its answer is empty"
        raise UnreadableAnswerError(message)
    return answer.text


def complete(url: str, key: str | None = KEY, timeout_s: float = 20.0) -> str:
    """The text of the answer, or the message of the failure."""
    (result,) = ChatEndpoint(url, key).complete([BODY], text_of, timeout_s)
    return str(result)


def test_results_are_in_the_order_of_the_requests_with_failures_among_them(
    server: ChatServer,
) -> None:
    server.reply("a")
    endpoint = ChatEndpoint(server.url, None)
    assert endpoint.complete([], text_of, 20.0) == []
    assert endpoint.complete([BODY] * 3, text_of, 20.0) == ["a"] * 3

    def read(answer: ChatAnswer) -> str:
        return f"{answer.text} by {answer.model}"

    server.answers = [(404, {}, b"no such model"), (200, {}, server.answers[0][2])]
    results = endpoint.complete([BODY, BODY], read, 20.0)
    assert sorted(map(str, results)) == ["a by judge-1", "it answered HTTP 404: no such model"]
    assert [isinstance(result, ChatFailedError) for result in results].count(True) == 1


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
def test_a_temporary_error_is_retried_after_the_requested_wait(
    server: ChatServer, status: int
) -> None:
    server.reply_error(status, retry_after="0.3")
    server.reply("yes")
    begun_s = monotonic()
    assert complete(server.url) == "yes"
    assert 0.3 <= monotonic() - begun_s < 5.0


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        ((401, {}, f"bad key {KEY}".encode()), "it answered HTTP 401: bad key [key]"),
        ((400, {}, b"too many images"), "it answered HTTP 400: too many images"),
        ((404, {}, b"." * 195 + KEY.encode()), f"it answered HTTP 404: {'.' * 195}[key]"),
        ((503, {"retry-after": "3600"}, b"busy"), "it answered HTTP 503: busy"),
    ],
)
def test_an_error_that_will_not_pass_is_not_retried(
    server: ChatServer, answer: tuple[int, dict[str, str], bytes], failure: str
) -> None:
    server.answers.append(answer)
    assert complete(server.url) == failure
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        (b'{"choices": []}', "its response is no chat completion with text: '{\"choices\": []}'"),
        (b'{"choices": [{"message": {"content": null}}]}', "its response is no chat completion"),
        (b"<html>", "its response is no chat completion with text: '<html>'"),
        (b"[" * 100_000, "its response is no chat completion with text: '[[["),
        (b'{"choices": [{"message": {"content": ""}}]}', "its answer is empty"),
        (b" " * (MAX_ANSWER_BYTES + 1), "its answer has more than 1048576 bytes"),
    ],
    ids=["no choice", "no text", "no JSON", "deep JSON", "empty text", "too long"],
)
@pytest.mark.parametrize("headers", [{}, {"content-type": "application/json"}], ids=["", "json"])
def test_an_unreadable_answer_is_requested_again_three_times(
    server: ChatServer, body: bytes, failure: str, headers: dict[str, str]
) -> None:
    server.answers.append((200, headers, body))
    assert complete(server.url).startswith(failure)
    assert len(server.requests) == 4


def test_of_an_answer_that_is_too_long_no_more_than_the_limit_is_read(server: ChatServer) -> None:
    num_bytes: list[int] = []
    content_of = Response.aread

    async def aread(response: Response) -> bytes:
        content = await content_of(response)
        num_bytes.append(len(content))
        return content

    server.answers.append((200, {}, b" " * (8 * MAX_ANSWER_BYTES)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Response, "aread", aread)
        assert complete(server.url) == "its answer has more than 1048576 bytes"
    assert len(num_bytes) == 4
    assert all(MAX_ANSWER_BYTES < size < 2 * MAX_ANSWER_BYTES for size in num_bytes)


@pytest.mark.parametrize(("fields", "num_requests"), [({}, 4), ({"seed": 1}, 1)])
def test_an_answer_that_is_too_long_is_requested_again_only_without_a_seed(
    server: ChatServer, fields: dict[str, JsonValue], num_requests: int
) -> None:
    server.answers.append((200, {}, b" " * (MAX_ANSWER_BYTES + 1)))
    (result,) = ChatEndpoint(server.url, KEY).complete([BODY | fields], text_of, 20.0)
    assert str(result) == "its answer has more than 1048576 bytes"
    assert len(server.requests) == num_requests


def test_each_request_has_its_own_limit_on_the_answer(server: ChatServer) -> None:
    body = {"choices": [{"message": {"content": "x" * 2 * MAX_ANSWER_BYTES}}]}
    server.answers.append((200, {}, json.dumps(body).encode()))
    requests = [BODY | {"max_tokens": number, "seed": 1} for number in (0, 3, 1)]
    results = ChatEndpoint(server.url, KEY).complete(
        requests,
        lambda answer: len(answer.text),
        20.0,
        max_bytes=lambda sent: MAX_ANSWER_BYTES * int(str(sent["max_tokens"])),
    )
    assert list(map(str, results)) == [
        "its answer has more than 0 bytes",
        str(2 * MAX_ANSWER_BYTES),
        "its answer has more than 1048576 bytes",
    ]


def test_refused_fields_are_left_out_of_this_and_later_requests(server: ChatServer) -> None:
    server.reply_error(400, "unsupported value: 'temperature'")
    server.reply_error(400, "max_tokens: use max_completion_tokens")
    server.reply("yes")
    endpoint = ChatEndpoint(server.url, KEY)
    assert endpoint.complete([BODY], text_of, 20.0) == ["yes"]
    assert endpoint.complete([BODY], text_of, 20.0) == ["yes"]
    assert server.requests[1].keys() == {"model", "messages", "max_tokens"}
    assert server.requests[2] == {"model": "m", "messages": [], "max_completion_tokens": 9}
    assert server.requests[3:] == server.requests[2:3]


def test_the_time_limit_includes_waits_between_retries(server: ChatServer) -> None:
    server.reply_error(429, "slow down", retry_after="100")
    begun_s = monotonic()
    failure = complete(server.url, timeout_s=3.0)
    assert monotonic() - begun_s < 20.0
    assert failure == "it gave no answer in 3 s; its last response was HTTP 429"


def test_the_time_limit_holds_for_a_server_that_sends_a_byte_at_a_time() -> None:
    is_over = threading.Event()

    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):  # the client leaves while this sends
            connection.recv(1)
            connection.sendall(b"HTTP/1.1 200 OK\r\nx: ")
            while not is_over.wait(0.02):
                connection.send(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        thread = threading.Thread(target=drip, args=[listener])
        thread.start()
        try:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
            assert complete(url, timeout_s=3.0) == "it gave no answer in 3 s"
        finally:
            is_over.set()
            thread.join()


def test_a_server_that_does_not_answer_or_refuses_the_key_is_named(server: ChatServer) -> None:
    away = ChatEndpoint("http://127.0.0.1:9/v1", KEY)
    with pytest.raises(UnreachableError, match=r"^it cannot be reached \(ConnectError: .+\)"):
        away.list_models("it", "MY_KEY", ways=["start it"])
    server.models_status = 403
    with pytest.raises(UsageError, match=r"^the judge refuses the key \(HTTP 403\); set MY_KEY$"):
        ChatEndpoint(server.url, KEY).list_models("the judge", "MY_KEY", ways=())


def test_a_redirect_is_not_followed_so_no_other_host_gets_the_key(server: ChatServer) -> None:
    with chat_server() as other:
        other.reply("yes")
        other.models = ["m"]
        location = {"location": f"{other.url}/chat/completions"}
        server.answers.append((307, location, b"moved"))
        assert complete(server.url) == "it answered HTTP 307: moved"
        server.models_status, server.models_headers = 307, {"location": f"{other.url}/models"}
        assert ChatEndpoint(server.url, KEY).list_models("the server", "KEY", ways=()) == []
        assert other.headers == []
    assert server.keys == [f"Bearer {KEY}"] * 2


@pytest.mark.parametrize("key", [KEY, None])
def test_nothing_of_the_environment_is_sent(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-the-environment")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-of-the-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv(
        "OPENAI_CUSTOM_HEADERS", "Authorization: of-the-environment\nX-Other: of-the-environment"
    )
    server.reply(f"your key is {KEY}")
    assert complete(server.url, key) == f"your key is {'[key]' if key else KEY}"
    (headers,) = server.headers
    assert headers.get("authorization") == (f"Bearer {KEY}" if key else None)
    assert "environment" not in json.dumps(headers)

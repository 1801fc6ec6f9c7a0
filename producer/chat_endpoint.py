"""Completions from an OpenAI-compatible server: the `openai` client and its errors.

Importing `openai` takes most of a second, so this module is imported only where a server is used.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextvars import ContextVar
from typing import Final, Literal, NamedTuple, TypeVar

from httpx2 import AsyncByteStream, AsyncClient, Limits, Request, Response, create_ssl_context
from openai import APIConnectionError, APIStatusError, AsyncOpenAI
from pydantic import JsonValue

from producer.chat_answer import (
    AnswerTooLongError,
    ChatAnswer,
    ChatFailedError,
    ListedModel,
    UnreadableAnswerError,
)
from producer.errors import UnreachableError, UsageError
from producer.http_environment import check_http_environment
from schemas.http_environment import by_proxy, is_loopback

MAX_ANSWER_BYTES: Final = 1 << 20
"""Of an answer that is text alone."""
MAX_RETRIES: Final = 3
"""After a failed connection and after HTTP 408, 409, 429 and 5xx."""
MAX_ANSWERS: Final = 4
"""Requested until one is readable."""
CHECK_TIMEOUT_S: Final = 15.0
OPTIONAL: Final = ("temperature", "seed", "max_tokens")
"""Fields that some servers refuse; `max_tokens` is then sent under its newer name."""
SENT_HEADERS: Final = frozenset({"accept", "connection", "content-length", "content-type", "host"})
"""Besides the key. `openai` adds others, some from environment variables."""
BAD_REQUEST: Final = 400
BUSY: Final = frozenset({408, 409, 429})
SERVER_ERROR: Final = 500
KEY_REFUSED: Final = frozenset({401, 403})

T = TypeVar("T")

_last_status: ContextVar[int | None] = ContextVar("last_status", default=None)
"""HTTP status of the latest response to the current request."""
_max_bytes: ContextVar[int] = ContextVar("max_bytes", default=MAX_ANSWER_BYTES)
"""Of the answer to the current request."""


Path = Literal["/chat/completions", "/completions"]


class _Sent(NamedTuple):
    path: Path
    body: dict[str, JsonValue]
    optional: frozenset[str]
    max_bytes: int


class ChatEndpoint:
    """A server at one URL. Thread-safe; follows no redirect, which could pass the key on."""

    def __init__(self, url: str, key: str | None) -> None:
        """`key`: the bearer token; None sends none.

        UsageError if the shell's proxies or certificates let no request be sent.
        """
        check_http_environment(url, needs_proxies=False)
        self._url = url
        self._key = key
        self._ssl_context = create_ssl_context()
        self._refused: frozenset[str] = frozenset()
        """Fields of OPTIONAL that the server refuses."""

    def list_models(
        self, name: str, key_variable: str, *, ways: Sequence[str]
    ) -> list[ListedModel]:
        """The models; empty if the server does not list them.

        `name`: the server in messages. UnreachableError, with these `ways`, if it does not answer;
        UsageError if it refuses the key.
        """
        try:
            response = asyncio.run(self._get_models())
        except APIStatusError as error:
            if error.status_code in KEY_REFUSED:
                message = f"{name} refuses the key (HTTP {error.status_code}); set {key_variable}"
                raise UsageError(message) from None
            return []
        except (APIConnectionError, TimeoutError) as error:
            message = f"{name} cannot be reached ({self._describe(error, CHECK_TIMEOUT_S)})"
            raise UnreachableError(message, ways=ways) from None
        match _read_json(response):
            case {"data": [*rows]}:
                return [model for row in rows if (model := _listed(row)) is not None]
            case _:
                return []

    def complete(
        self,
        bodies: Sequence[dict[str, JsonValue]],
        read: Callable[[ChatAnswer], T],
        timeout_s: float,
        path: Path = "/chat/completions",
        optional: Collection[str] = OPTIONAL,
        max_bytes: Callable[[dict[str, JsonValue]], int] = lambda _body: MAX_ANSWER_BYTES,
    ) -> list[T | ChatFailedError]:
        """Send all requests at once; for each, in order, what `read` returns or the failure.

        `read` may raise UnreadableAnswerError. `timeout_s`: of each request, retries included.
        `optional`: fields that are left out for a server that refuses them. `max_bytes`: of the
        answer to a body; a longer one is a failure, and is requested again unless the request has a
        seed, which would give the same one.
        """
        refusable = frozenset(optional)

        async def complete_all() -> list[T | ChatFailedError]:
            async with self._open(MAX_RETRIES) as client:
                requests = [
                    self._complete(
                        client, _Sent(path, body, refusable, max_bytes(body)), read, timeout_s
                    )
                    for body in bodies
                ]
                return await asyncio.gather(*requests)

        return asyncio.run(complete_all())

    def command(self, path: str, body: dict[str, JsonValue], timeout_s: float) -> str:
        """POST an administrative request; what the server answers. ChatFailedError.

        `path`: below the endpoint's URL, or a URL of the same server.
        """

        async def post() -> Response:
            async with asyncio.timeout(timeout_s), self._open(MAX_RETRIES) as client:
                return await client.post(path, cast_to=Response, body=body)

        try:
            return self._redact(asyncio.run(post()).text)
        except (APIConnectionError, APIStatusError, TimeoutError) as error:
            raise self._failure(error, timeout_s) from None

    async def _get_models(self) -> Response:
        async with asyncio.timeout(CHECK_TIMEOUT_S), self._open(max_retries=0) as client:
            return await client.get("/models", cast_to=Response)

    async def _complete(
        self,
        client: AsyncOpenAI,
        sent: "_Sent",
        read: Callable[[ChatAnswer], T],
        timeout_s: float,
    ) -> T | ChatFailedError:
        failure = ""
        _max_bytes.set(sent.max_bytes)
        try:
            async with asyncio.timeout(timeout_s):
                for _ in range(MAX_ANSWERS):
                    try:
                        return read(self._parse(await self._post(client, sent)))
                    except UnreadableAnswerError as error:
                        failure = str(error)
                        is_seeded = "seed" in sent.body.keys() - self._refused
                        if is_seeded and isinstance(error, AnswerTooLongError):
                            break
        except TimeoutError as error:
            failure = failure or self._describe(error, timeout_s)
        except (APIConnectionError, APIStatusError) as error:
            return self._failure(error, timeout_s)
        return ChatFailedError(failure)

    async def _post(self, client: AsyncOpenAI, sent: "_Sent") -> Response:
        """The response to the request without the fields that the server refuses."""
        body = sent.body
        fields = {name: value for name, value in body.items() if name not in self._refused}
        if "max_tokens" in body.keys() - fields.keys():
            fields["max_completion_tokens"] = body["max_tokens"]
        try:
            return await client.post(sent.path, cast_to=Response, body=fields)
        except APIStatusError as error:
            text = error.response.text
            refused = {name for name in sent.optional if name in fields and name in text}
            if error.status_code != BAD_REQUEST or not refused:
                raise
        # Some reasoning models take only their default temperature.
        self._refused |= refused
        return await self._post(client, sent)

    def _parse(self, response: Response) -> ChatAnswer:
        max_bytes = _max_bytes.get()
        if len(response.content) > max_bytes:
            message = f"its answer has more than {max_bytes} bytes"
            raise AnswerTooLongError(message)
        content = _read_json(response)
        match content:
            case {"choices": [{"message": {"content": str(text)}}, *_]} | {
                "choices": [{"text": str(text)}, *_]
            }:
                assert isinstance(content, dict)  # noqa: S101  # it has choices
                model = content.get("model")
                named = self._redact(model) if isinstance(model, str) else None
                return ChatAnswer(self._redact(text), named, content)
            case _:
                start = self._redact(response.text)[:200]
                message = f"its response is no chat completion with text: {start!r}"
                raise UnreadableAnswerError(message)

    def _open(self, max_retries: int) -> AsyncOpenAI:
        """A client for the running event loop. Only asyncio.timeout limits its requests."""
        return AsyncOpenAI(
            base_url=self._url,
            api_key=self._key or "none",
            max_retries=max_retries,
            timeout=None,
            http_client=AsyncClient(
                verify=self._ssl_context,
                # Even a proxy that is never asked would have to be one that the client knows.
                trust_env=not is_loopback(self._url),
                limits=Limits(max_connections=None),
                follow_redirects=False,
                event_hooks={
                    "request": [self._set_headers],
                    "response": [_note_status, _limit_content],
                },
            ),
        )

    async def _set_headers(self, request: Request) -> None:
        for name in request.headers.keys() - SENT_HEADERS:
            del request.headers[name]
        # A compressed answer of few bytes may have any size.
        request.headers["accept-encoding"] = "identity"
        if self._key is not None:
            request.headers["authorization"] = f"Bearer {self._key}"

    def _failure(self, error: Exception, timeout_s: float) -> ChatFailedError:
        status = error.status_code if isinstance(error, APIStatusError) else None
        is_transient = status is None or status in BUSY or status >= SERVER_ERROR
        return ChatFailedError(self._describe(error, timeout_s), status, is_transient=is_transient)

    def _describe(self, error: Exception, timeout_s: float) -> str:
        if isinstance(error, APIStatusError):
            start = self._redact(error.response.text)[:200]
            return f"it answered HTTP {error.status_code}: {start}"
        if isinstance(error, APIConnectionError):
            reason = f"{type(error.__cause__).__name__}: {error.__cause__}"
            return self._redact(reason) + by_proxy(self._url, os.environ)
        text = f"it gave no answer in {timeout_s:g} s" + by_proxy(self._url, os.environ)
        if (status := _last_status.get()) is None:
            return text
        return f"{text}; its last response was HTTP {status}"

    def _redact(self, text: str) -> str:
        return text.replace(self._key, "[key]") if self._key else text


def _listed(row: JsonValue) -> ListedModel | None:
    """None without a name."""
    match row:
        case {"id": str(name), **others}:
            root, owner = others.get("root"), others.get("owned_by")
            return ListedModel(
                name,
                root if isinstance(root, str) else None,
                owner if isinstance(owner, str) else None,
            )
        case _:
            return None


def _read_json(response: Response) -> JsonValue:
    """None if the body is not JSON."""
    try:
        content: JsonValue = response.json()
    except (ValueError, RecursionError):
        return None
    return content


async def _note_status(response: Response) -> None:
    _last_status.set(response.status_code)


async def _limit_content(response: Response) -> None:
    assert isinstance(response.stream, AsyncByteStream)  # noqa: S101  # of an AsyncClient
    response.stream = _FirstBytes(response.stream, _max_bytes.get())


class _FirstBytes(AsyncByteStream):
    """The content up to the first chunk beyond `max_bytes`; the rest is not read."""

    def __init__(self, content: AsyncByteStream, max_bytes: int) -> None:
        self._content = content
        self._max_bytes = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        num_bytes = 0
        async for chunk in self._content:
            yield chunk
            num_bytes += len(chunk)
            if num_bytes > self._max_bytes:
                break

    async def aclose(self) -> None:
        """Close the connection."""
        await self._content.aclose()

"""The OpenAI-compatible API, with vLLM's token and adapter fields: requests, responses, routes.

Errors have OpenAI's format; none reveals the key.
"""

import hmac
import io
import time
from asyncio import to_thread, wrap_future
from base64 import b64decode
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Annotated, Any, Literal, TypeVar
from uuid import uuid4

from PIL import Image, UnidentifiedImageError
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from producer.environments.environment import Screenshot
from producer.errors import NotFoundError, UsageError
from producer.policy.torch_policy.sampling import SamplingParameters
from producer.serve.engine import Answer, ServingEngine

Body = TypeVar("Body", bound=BaseModel)
Handler = Callable[[Request], Awaitable[Response]]


DEFAULT_MAX_TOKENS = 256


class _Request(BaseModel):
    """Fields of both kinds of completion. Others are ignored, as OpenAI-compatible servers do."""

    model_config = ConfigDict(extra="ignore")

    model: str
    temperature: Annotated[float, Field(ge=0, le=100)] = 1.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    n: Literal[1] = 1
    stream: Literal[False] = False
    return_token_ids: bool = False

    @property
    def parameters(self) -> SamplingParameters:
        """The sampling parameters; without a given seed, a random one."""
        return SamplingParameters(
            temperature=self.temperature,
            max_tokens=self.max_completion_tokens or self.max_tokens or DEFAULT_MAX_TOKENS,
            seed=uuid4().int % 2**63 if self.seed is None else self.seed,
            top_p=self.top_p,
        )


class CompletionRequest(_Request):
    """POST /v1/completions; the prompt is token ids."""

    prompt: list[int]
    logprobs: int | None = None


class ChatRequest(_Request):
    """POST /v1/chat/completions."""

    messages: Annotated[list[dict[str, Any]], Field(min_length=1)]
    logprobs: bool = False


class LoadAdapter(BaseModel):
    """POST /v1/load_lora_adapter."""

    lora_name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,128}$")]
    lora_path: str


class UnloadAdapter(BaseModel):
    """POST /v1/unload_lora_adapter."""

    lora_name: str


def read_messages(
    messages: list[dict[str, Any]], *, sees_screens: bool
) -> tuple[list[dict[str, Any]], list[Screenshot]]:
    """Convert messages to a chat template's format and extract their images. Raises UsageError."""
    read, screenshots = [], []
    for message in messages:
        content = message.get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if message.get("role") not in {"system", "user", "assistant"} or not isinstance(
            parts, list
        ):
            text = "messages: each needs a role (system, user or assistant) and a content"
            raise UsageError(text)
        kept: list[dict[str, Any]] = []
        for part in parts:
            match part:
                case {"type": "text", "text": str(text)}:
                    kept.append({"type": "text", "text": text})
                case {"type": "image_url", "image_url": {"url": str(url)}} if sees_screens:
                    screenshots.append(_screenshot(url))
                    kept.append({"type": "image"})
                case _:
                    text = "messages: content has text and image_url parts alone"
                    raise UsageError(
                        text if sees_screens else f"{text}; this policy takes no images"
                    )
        is_plain = isinstance(content, str) or not sees_screens
        plain = "".join(part.get("text", "") for part in kept)
        read.append({"role": message["role"], "content": plain if is_plain else kept})
    return read, screenshots


def _screenshot(url: str) -> Screenshot:
    """Decode the image in a data URL; other URLs are not fetched."""
    head, _, data = url.partition(",")
    if not head.startswith("data:image/") or not head.endswith(";base64"):
        message = "image_url: must be a data URL in base64; others are not fetched"
        raise UsageError(message)
    try:
        png = b64decode(data, validate=True)
        with Image.open(io.BytesIO(png)) as image:
            return Screenshot(png, *image.size)
    except (ValueError, UnidentifiedImageError, OSError, Image.DecompressionBombError) as error:
        message = f"image_url: not an image ({error})"
        raise UsageError(message) from None


def completion_response(request: CompletionRequest, answer: Answer) -> dict[str, Any]:
    """The body for a completion of token ids."""
    done = answer.completion
    choice: dict[str, Any] = {
        "index": 0,
        "text": answer.text,
        "finish_reason": done.stop_reason,
        "logprobs": None
        if request.logprobs is None
        else {"tokens": answer.token_texts, "token_logprobs": list(done.logprobs)},
    }
    if request.return_token_ids:
        choice |= {"token_ids": list(done.tokens), "prompt_token_ids": answer.prompt_tokens}
    return {**_head(request, answer, "text_completion"), "choices": [choice]}


def chat_response(request: ChatRequest, answer: Answer) -> dict[str, Any]:
    """The body for a chat completion."""
    done = answer.completion
    content: list[dict[str, Any]] = [
        {"token": text, "logprob": logprob, "bytes": None, "top_logprobs": []}
        for text, logprob in zip(answer.token_texts, done.logprobs, strict=True)
    ]
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "content": answer.text},
        "finish_reason": done.stop_reason,
        "logprobs": {"content": content} if request.logprobs else None,
    }
    body = {**_head(request, answer, "chat.completion"), "choices": [choice]}
    if request.return_token_ids:
        choice["token_ids"] = list(done.tokens)
        body["prompt_token_ids"] = answer.prompt_tokens
    return body


def _head(request: _Request, answer: Answer, kind: str) -> dict[str, Any]:
    num_prompt, num_completion = len(answer.prompt_tokens), len(answer.completion.tokens)
    return {
        "id": f"cmpl-{uuid4().hex}",
        "object": kind,
        "created": int(time.time()),
        "model": request.model,
        "usage": {
            "prompt_tokens": num_prompt,
            "completion_tokens": num_completion,
            "total_tokens": num_prompt + num_completion,
        },
    }


class _NoKeyError(Exception):
    """The key is missing or wrong."""


def make_app(engine: ServingEngine, key: str | None) -> Starlette:
    """Create the app. Every request except /health must carry `key` as a bearer token, if given."""
    routes = _Routes(engine)

    def keyed(handler: Handler) -> Handler:
        async def answer(request: Request) -> Response:
            _check_key(request, key)
            return await handler(request)

        return answer

    return Starlette(
        routes=[
            Route("/health", lambda _: PlainTextResponse("ok")),
            Route("/v1/models", keyed(routes.models)),
            Route("/v1/completions", keyed(routes.completions), methods=["POST"]),
            Route("/v1/chat/completions", keyed(routes.chat), methods=["POST"]),
            Route("/v1/load_lora_adapter", keyed(routes.load_adapter), methods=["POST"]),
            Route("/v1/unload_lora_adapter", keyed(routes.unload_adapter), methods=["POST"]),
        ],
        exception_handlers={
            _NoKeyError: _error_with(HTTPStatus.UNAUTHORIZED),
            NotFoundError: _error_with(HTTPStatus.NOT_FOUND),
            UsageError: _error_with(HTTPStatus.BAD_REQUEST),
        },
    )


class _Routes:
    def __init__(self, engine: ServingEngine) -> None:
        self._engine = engine

    async def models(self, _request: Request) -> Response:
        name, *others = self._engine.names
        base = {"id": name, "object": "model", "owned_by": "cua-train"}
        # vLLM does the same when it serves a folder under another name.
        base |= {"root": others[0]} if others else {}
        adapters = [
            {"id": name, "object": "model", "owned_by": "cua-train", "root": folder}
            for name, folder in self._engine.adapters.items()
        ]
        return JSONResponse({"object": "list", "data": [base, *adapters]})

    async def completions(self, request: Request) -> Response:
        body = await _read(request, CompletionRequest)
        self._check_model(body.model)
        future = self._engine.complete(body.model, body.prompt, [], body.parameters)
        return JSONResponse(completion_response(body, await wrap_future(future)))

    async def chat(self, request: Request) -> Response:
        body = await _read(request, ChatRequest)
        self._check_model(body.model)
        messages, screenshots = read_messages(body.messages, sees_screens=self._engine.sees_screens)
        tokens = await to_thread(self._engine.prompt, messages, screenshots)
        future = self._engine.complete(body.model, tokens, screenshots, body.parameters)
        return JSONResponse(chat_response(body, await wrap_future(future)))

    async def load_adapter(self, request: Request) -> Response:
        body = await _read(request, LoadAdapter)
        await to_thread(self._engine.load_adapter, body.lora_name, body.lora_path)
        return PlainTextResponse(f"Success: LoRA adapter '{body.lora_name}' added successfully.")

    async def unload_adapter(self, request: Request) -> Response:
        body = await _read(request, UnloadAdapter)
        if not await to_thread(self._engine.unload_adapter, body.lora_name):
            message = f"there is no adapter {body.lora_name!r}"
            raise NotFoundError(message)
        return PlainTextResponse(f"Success: LoRA adapter '{body.lora_name}' removed successfully.")

    def _check_model(self, name: str) -> None:
        if name not in self._engine.names and name not in self._engine.adapters:
            message = f"there is no model {name!r}"
            raise NotFoundError(message)


def _check_key(request: Request, key: str | None) -> None:
    given = request.headers.get("authorization", "")
    if key is not None and not hmac.compare_digest(given.encode(), f"Bearer {key}".encode()):
        message = "the key is missing or wrong; give it as a bearer token"
        raise _NoKeyError(message)


async def _read(request: Request, kind: type[Body]) -> Body:
    try:
        return kind.model_validate_json(await request.body())
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        message = f"{field}: {first['msg']}"
        raise UsageError(message) from None


def _error_with(status: HTTPStatus) -> Callable[[Request, Exception], Response]:
    def answer(_request: Request, error: Exception) -> Response:
        body = {"message": str(error), "type": status.phrase, "code": int(status)}
        return JSONResponse({"error": body}, status_code=status)

    return answer

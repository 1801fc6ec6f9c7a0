"""Servers that sample for a policy trained here: requests, and the adapter of each version.

An adapter's name on the servers is a hash of its weights, so publishing it twice does nothing, and
an answer identifies the weights that produced it. A restarted server has lost its adapters and gets
the newest one again.

The field `return_token_ids`, which requests the tokens of prompt and completion, is no OpenAI's but
that of vLLM and SGLang. https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html
"""

import logging
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Final, Literal
from uuid import UUID

from pydantic import JsonValue

from producer.chat_answer import (
    ChatAnswer,
    ChatFailedError,
    ListedModel,
    UnreadableAnswerError,
    id_of,
    listed_names,
)
from producer.chat_endpoint import ChatEndpoint
from producer.endpoint_url import KEY_VARIABLE
from producer.errors import UnreachableError, UsageError
from producer.policy.answer_size import max_answer_bytes
from producer.policy.policy import SampleRequest
from producer.policy.prompts import MAX_SEED, chat_messages
from producer.policy.server_protocols import (
    HTTP_BAD_REQUEST,
    ServerProtocol,
    lacks_adapter,
    protocol_of,
)
from producer.policy.token_answer import TokenAnswer, read_tokens

logger = logging.getLogger(__name__)

LOAD_TIMEOUT_S: Final = 120.0
"""Time limit for loading an adapter."""
RETRY_S: Final = 1.0
"""Initial pause between attempts at an unreachable server, doubled up to `MAX_RETRY_S`."""
MAX_RETRY_S: Final = 15.0
HTTP_SERVER_ERROR: Final = 500


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """A request for one completion."""

    episode: UUID
    """Episode id. All its turns go to one server, whose prefix cache holds the earlier ones."""
    body: dict[str, JsonValue]
    """JSON body, without the model."""
    path: Literal["/chat/completions", "/completions"]


def parameters_of(request: SampleRequest) -> dict[str, JsonValue]:
    """The body of a request except its prompt; asks for the tokens too."""
    return {
        "temperature": request.temperature,
        "top_p": request.top_p,
        "max_tokens": request.max_tokens,
        "seed": request.seed % MAX_SEED,
        "return_token_ids": True,
    }


def chat_request(request: SampleRequest, system_prompt: str | None, num_past: int) -> ServerRequest:
    """The turn as chat messages, including up to `num_past` past turns."""
    messages = chat_messages(request, system_prompt, num_past)
    body: dict[str, JsonValue] = {"messages": messages, "logprobs": True}
    return ServerRequest(request.episode, body | parameters_of(request), "/chat/completions")


class SamplingServers:
    """OpenAI-compatible servers of one base policy, to which adapters are published.

    Not thread-safe. The key appears in no error or answer.
    """

    def __init__(
        self,
        urls: Sequence[str],
        model: str,
        key: str | None,
        adapters_dir: Path,
        *,
        timeout_s: float,
    ) -> None:
        """`adapters_dir` must be readable by the servers. `timeout_s` is per turn, with waits."""
        self._urls = tuple(urls)
        self._endpoints = [ChatEndpoint(url, key) for url in urls]
        self._model = model
        self._adapters_dir = adapters_dir
        self._timeout_s = timeout_s
        self._adapter: str | None = None
        """Name of the newest adapter, which every server has."""
        self._protocols: dict[int, ServerProtocol] = {}
        """Of the servers that have listed their models."""

    @property
    def urls(self) -> tuple[str, ...]:
        """URLs of the servers, in the given order."""
        return self._urls

    def check(self) -> None:
        """Raises UnreachableError if a server is down, UsageError if one refuses key or policy.

        A server lists the policy under its name, or under another name with the folder or hub id
        that it was loaded from, as vLLM and `cua-train serve` do. Requests only name adapters.
        """
        for server, url in enumerate(self._urls):
            listed = self._list_models(server)
            if id_of(self._model, listed) is None:
                served = listed_names(listed) or "no policy that it names"
                message = (
                    f"base_url: {url} serves {served}, not {self._model!r}, the policy being"
                    " trained; start the server with that policy"
                )
                raise UsageError(message)

    def publish(self, save: Callable[[Path], str]) -> None:
        """Load the adapter that `save` writes, and unload the previous one.

        `save` writes PEFT's layout to an empty folder and returns the sha256 of the weights. An
        unreachable server gets the adapter when it is back. Raises UsageError if a server refuses
        the adapter, UnreachableError if none answers in time.
        """
        self._adapters_dir.mkdir(parents=True, exist_ok=True)
        written = Path(mkdtemp(dir=self._adapters_dir))
        name = f"cua-{save(written)[:16]}"
        folder = self._adapters_dir / name
        if folder.exists():
            shutil.rmtree(written)
        else:
            written.chmod(0o755)  # a server may run as another user
            written.rename(folder)
        before, self._adapter = self._adapter, name
        self._load_on_some()
        if before not in {None, name}:
            for server in range(len(self._urls)):
                _ignoring_failure(
                    partial(self._command, server, "/unload_lora_adapter", {"lora_name": before})
                )
            shutil.rmtree(self._adapters_dir / str(before), ignore_errors=True)

    @property
    def adapter(self) -> str:
        """Name of the newest adapter. Raises ValueError before the first is published."""
        if self._adapter is None:
            message = "no adapter was published yet"
            raise ValueError(message)
        return self._adapter

    @property
    def adapters_dir(self) -> Path:
        """Folder of the adapters."""
        return self._adapters_dir

    @property
    def model(self) -> str:
        """Name of the base policy."""
        return self._model

    def use(self, adapter: str) -> None:
        """Sample with an adapter that another process published."""
        self._adapter = adapter

    def _list_models(self, server: int) -> list[ListedModel]:
        """Raises UnreachableError, or UsageError if the server refuses the key."""
        named = f"base_url: {self._urls[server]}"
        listed = self._endpoints[server].list_models(
            named, KEY_VARIABLE, ways=("start the server",)
        )
        if listed:
            self._protocols[server] = protocol_of(listed)
        return listed

    def _protocol(self, server: int) -> ServerProtocol:
        """Raises as `_list_models`; a guess could have SGLang sample without the adapter."""
        if server not in self._protocols and not self._list_models(server):
            message = f"base_url: {self._urls[server]} does not list its models"
            raise UnreachableError(message, ways=("check the server's log",))
        return self._protocols[server]

    def _command(self, server: int, path: str, body: dict[str, JsonValue]) -> None:
        root = self._protocol(server).load_root(self._urls[server])
        self._endpoints[server].command(f"{root}{path}", body, LOAD_TIMEOUT_S)

    def _load_on_some(self) -> None:
        """Load the newest adapter on every reachable server, and on at least one."""
        until_s = time.monotonic() + self._timeout_s
        for pause_s in _pauses():
            away: list[UnreachableError] = []
            for server in range(len(self._urls)):
                try:
                    self._load(server)
                except UnreachableError as error:
                    logger.warning("%s", error)
                    away.append(error)
            if len(away) < len(self._urls):
                return
            if time.monotonic() + pause_s >= until_s:
                raise away[0]
            time.sleep(pause_s)

    def complete(self, requests: Sequence[ServerRequest]) -> list[TokenAnswer | ChatFailedError]:
        """Return one completion per request, in order, from the adapter published last.

        Waits at most `timeout_s`, for all requests together, for a server that is down or has lost
        its adapters; meanwhile the other servers take its requests.
        """
        results: list[TokenAnswer | ChatFailedError] = [ChatFailedError("")] * len(requests)
        pending = list(range(len(requests)))
        until_s = time.monotonic() + self._timeout_s
        for attempt, pause_s in enumerate(_pauses()):
            left_s = until_s - time.monotonic()
            for row, result in self._complete(
                {row: requests[row] for row in pending}, attempt, max(1.0, left_s)
            ):
                results[row] = result
            pending = [row for row in pending if _may_succeed_later(results[row])]
            if not pending or time.monotonic() + pause_s >= until_s:
                break
            logger.warning(
                "%d of %d requests got no completion (%s); trying again in %g s",
                *(len(pending), len(requests), results[pending[0]], pause_s),
            )
            time.sleep(pause_s)
        return results

    def _complete(
        self, requests: dict[int, ServerRequest], attempt: int, timeout_s: float
    ) -> list[tuple[int, TokenAnswer | ChatFailedError]]:
        """One attempt: row -> result; sends each server its requests concurrently."""
        work: dict[tuple[int, Literal["/chat/completions", "/completions"]], list[int]] = {}
        for row, request in requests.items():
            server = (request.episode.int + attempt) % len(self._urls)
            work.setdefault((server, request.path), []).append(row)
        with ThreadPoolExecutor(len(work)) as pool:
            done = pool.map(
                lambda item: self._ask(item[0][0], item[0][1], item[1], requests, timeout_s),
                work.items(),
            )
            return [pair for part in done for pair in part]

    def _ask(
        self,
        server: int,
        path: Literal["/chat/completions", "/completions"],
        rows: list[int],
        requests: dict[int, ServerRequest],
        timeout_s: float,
    ) -> list[tuple[int, TokenAnswer | ChatFailedError]]:
        try:
            names = self._protocol(server).names_of(self._adapter)
        except (UnreachableError, UsageError) as error:
            is_away = isinstance(error, UnreachableError)
            return [(row, ChatFailedError(str(error), is_transient=is_away)) for row in rows]
        bodies: list[dict[str, JsonValue]] = [names | requests[row].body for row in rows]
        endpoint = self._endpoints[server]
        results = endpoint.complete(
            bodies, self._read, timeout_s, path, optional=(), max_bytes=max_answer_bytes
        )
        if any(isinstance(result, ChatFailedError) and lacks_adapter(result) for result in results):
            logger.warning("%s has lost the adapter %s", self._urls[server], self._adapter)
            _ignoring_failure(partial(self._load, server))
        named = [
            result.named(self._urls[server]) if isinstance(result, ChatFailedError) else result
            for result in results
        ]
        return list(zip(rows, named, strict=True))

    def _read(self, answer: ChatAnswer) -> TokenAnswer:
        tokens = read_tokens(answer)
        if tokens.model != self._adapter:
            message = f"it answered with {tokens.model}, not with {self._adapter}"
            raise UnreadableAnswerError(message)
        return tokens

    def _load(self, server: int) -> None:
        """Raises UsageError if the server refuses the newest adapter, or UnreachableError."""
        path = str((self._adapters_dir / str(self._adapter)).absolute())
        body: dict[str, JsonValue] = {"lora_name": self._adapter, "lora_path": path}
        try:
            self._command(server, "/load_lora_adapter", body)
        except ChatFailedError as error:
            if error.status == HTTP_BAD_REQUEST and "already" in str(error):
                return
            message = f"base_url: {self._urls[server]} cannot load the adapter {path}: {error}"
            if error.status is None:
                raise UnreachableError(message, ways=("check the server's log",)) from None
            message = f"{message}; {self._protocol(server).needs}"
            if error.status >= HTTP_SERVER_ERROR:
                # A server that is temporarily broken, or vLLM for a rank above its maximum.
                raise UnreachableError(message, ways=("check the server's log",)) from None
            raise UsageError(message) from None


def _pauses() -> Iterator[float]:
    """Endless sequence of seconds to wait between attempts."""
    pause_s = RETRY_S
    while True:
        yield pause_s
        pause_s = min(2 * pause_s, MAX_RETRY_S)


def _may_succeed_later(result: TokenAnswer | ChatFailedError) -> bool:
    """Whether the server was unreachable, busy, or without the adapter."""
    if not isinstance(result, ChatFailedError):
        return False
    return result.is_transient or lacks_adapter(result)


def _ignoring_failure(act: Callable[[], object]) -> None:
    """Ignore an unreachable server here; the next request deals with it."""
    try:
        act()
    except (ChatFailedError, UsageError, UnreachableError) as error:
        logger.warning("%s", error)

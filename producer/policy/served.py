"""`ServedPolicy`: samples from an OpenAI-compatible server, for evaluations alone.

Each turn is one request with the dialogue so far, screenshots as data URLs; the answer's text is
parsed by the codec of the policy's format. There are no tokens, so nothing can be trained on.
"""

from base64 import b64encode
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple, NoReturn
from uuid import UUID

from pydantic import JsonValue

from producer.algorithms.settings import UpdateSettings
from producer.chat_endpoint import (
    ChatAnswer,
    ChatEndpoint,
    ChatFailedError,
    ChatRetryError,
)
from producer.codecs.codec import Codec
from producer.codecs.compact import CompactCodec
from producer.codecs.openai import OPENAI_PROMPT, OpenAICodec
from producer.codecs.qwen import OWN_PROMPT, QwenCodec
from producer.codecs.qwen_tools import QwenToolCodec, tools_prompt
from producer.codecs.recipe import RECIPE_PROMPT, RecipeCodec
from producer.endpoint_url import KEY_VARIABLE
from producer.environments.environment import Screenshot
from producer.errors import UnreachableError, UsageError
from producer.policy.learner import Trajectory, UpdateResult
from producer.policy.policy import Completion, SampleRequest

MAX_REQUESTS: Final = 64
"""Under way at the same time."""
MAX_SEED: Final = 2**31
"""Servers take a signed 32-bit integer."""


class ServedFormat(NamedTuple):
    """How a served policy is asked and answers."""

    codec: Codec
    system_prompt: str | None


FORMATS: Final[dict[str, ServedFormat]] = {
    "qwen_mobile": ServedFormat(QwenToolCodec("mobile_use"), tools_prompt("mobile_use")),
    "qwen_computer": ServedFormat(QwenToolCodec("computer_use"), tools_prompt("computer_use")),
    "qwen": ServedFormat(QwenCodec(), OWN_PROMPT),
    "recipe": ServedFormat(RecipeCodec(), RECIPE_PROMPT),
    "openai": ServedFormat(OpenAICodec(), OPENAI_PROMPT),
    "compact": ServedFormat(CompactCodec(), None),
}
"""`renderer_name` -> format; `auto` is qwen_mobile."""


class ServedPolicy:
    """A `Learner` that refuses to learn.

    Guarantees: a request that fails is a completion with `failure`, never a text; the key is in no
    completion, error or event. Blocks until every request is answered or has failed.
    """

    version = 0
    repeats_batches = False

    def __init__(
        self,
        url: str,
        model: str,
        endpoint: ChatEndpoint,
        written: ServedFormat,
        *,
        timeout_s: float,
        max_recent_turns: int | None = None,
    ) -> None:
        """`timeout_s`: of one turn, retries included; `max_recent_turns`: None shows all."""
        self._url = url
        self._model = model
        self._endpoint = endpoint
        self._written = written
        self._timeout_s = timeout_s
        self._max_recent_turns = max_recent_turns

    @property
    def name(self) -> str:
        """The network's name and its server."""
        return f"{self._model} at {self._url}"

    def check_answers(self) -> None:
        """UnreachableError if nobody answers; UsageError if the key or the name is refused."""
        try:
            status, listed = self._endpoint.models(self._url)
        except ChatFailedError as error:
            message = f"base_url: {self._url} cannot be reached ({error}); start the server"
            raise UnreachableError(message) from None
        if status in {401, 403}:
            message = f"base_url: {self._url} refuses the key (HTTP {status}); set {KEY_VARIABLE}"
            raise UsageError(message)
        if listed and self._model not in listed:
            message = (
                f"model_name: {self._url} serves {', '.join(listed[:8])}, and not {self._model!r};"
                " choose one of them"
            )
            raise UsageError(message)

    def sample(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        """One completion per request, in order."""
        if not requests:
            return []
        with ThreadPoolExecutor(min(MAX_REQUESTS, len(requests))) as pool:
            return list(pool.map(self._complete, requests))

    def forget(self, episode: UUID) -> None:
        """Nothing is kept."""

    def update(self, trajectories: Sequence[Trajectory], settings: UpdateSettings) -> UpdateResult:  # noqa: ARG002  # the interface's
        """UsageError, as for everything that needs weights."""
        self._refuse()

    def save_state(self, folder: Path) -> None:  # noqa: ARG002  # the interface's
        """UsageError."""
        self._refuse()

    def load_state(self, folder: Path) -> None:  # noqa: ARG002  # the interface's
        """UsageError."""
        self._refuse()

    def save_checkpoint(self, folder: Path) -> str:  # noqa: ARG002  # the interface's
        """UsageError."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        message = f"{self.name} has its weights on a server: it can be evaluated, not trained"
        raise UsageError(message)

    def _complete(self, request: SampleRequest) -> Completion:
        body: dict[str, JsonValue] = {
            "model": self._model,
            "messages": chat_messages(request, self._written.system_prompt, self._max_recent_turns),
            "temperature": request.temperature,
            "max_tokens": request.max_tokens,
            "seed": request.seed % MAX_SEED,
        }
        try:
            text = self._endpoint.ask(self._url, body, _said, self._timeout_s)
        except ChatFailedError as error:
            failure = f"{self.name} gave no completion: {error}"
            return Completion("", (), None, failure=failure)
        text = self._endpoint.safe(text)
        shot = request.screenshot
        size = (0, 0) if shot is None else (shot.width_px, shot.height_px)
        return Completion(text, self._written.codec.parse(text, *size), None)


def chat_messages(
    request: SampleRequest, system_prompt: str | None, max_recent_turns: int | None
) -> list[JsonValue]:
    """The dialogue: the task with the first turn that is shown, then screenshots and answers."""
    messages: list[JsonValue] = []
    if system_prompt is not None:
        messages.append({"role": "system", "content": system_prompt})
    start = 0 if max_recent_turns is None else max(0, len(request.history) - max_recent_turns)
    said: str | None = request.task.description
    for turn in request.history[start:]:
        messages.append(_shown(said, turn.screenshot))
        messages.append({"role": "assistant", "content": turn.completion.text})
        said = None
    words = [part for part in (said, request.text) if part]
    messages.append(_shown("\n\n".join(words) or None, request.screenshot))
    return messages


def _shown(text: str | None, screenshot: Screenshot | None) -> JsonValue:
    content: list[JsonValue] = []
    if text is not None:
        content.append({"type": "text", "text": text})
    if screenshot is not None:
        url = f"data:image/png;base64,{b64encode(screenshot.png).decode()}"
        content.append({"type": "image_url", "image_url": {"url": url}})
    return {"role": "user", "content": content}


def _said(answer: ChatAnswer) -> str:
    if not answer.text.strip():
        message = "its answer is empty"
        raise ChatRetryError(message)
    return answer.text

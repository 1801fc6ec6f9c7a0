"""`ServedPolicy`: samples from an OpenAI-compatible server, for evaluations only.

A turn is one request with the dialogue so far, screenshots as data URLs. A codec parses the answer.
Completions have no tokens, so they cannot be trained on.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn
from uuid import UUID

from pydantic import JsonValue

from producer.algorithms.settings import UpdateSettings
from producer.chat_answer import (
    ChatAnswer,
    ChatFailedError,
    UnreadableAnswerError,
    id_of,
    listed_names,
)
from producer.chat_endpoint import ChatEndpoint
from producer.codecs.codec import Format
from producer.codecs.compact import CompactCodec
from producer.codecs.openai import OPENAI_PROMPT, OpenAICodec
from producer.codecs.qwen import QwenToolCodec
from producer.codecs.qwen_tools import tools_prompt
from producer.codecs.recipe import RECIPE_PROMPT, RecipeCodec
from producer.endpoint_url import KEY_VARIABLE
from producer.errors import UsageError
from producer.policy.learner import Trajectory, UpdateResult
from producer.policy.policy import Completion, SampleRequest, failed
from producer.policy.prompts import MAX_SEED, chat_messages

FORMATS: Final[dict[str, Format]] = {
    "qwen_mobile": Format(QwenToolCodec("mobile_use"), tools_prompt("mobile_use")),
    "qwen_computer": Format(QwenToolCodec("computer_use"), tools_prompt("computer_use")),
    "recipe": Format(RecipeCodec(), RECIPE_PROMPT),
    "openai": Format(OpenAICodec(), OPENAI_PROMPT),
    "compact": Format(CompactCodec(), None),
}
"""`renderer_name` -> format."""


class ServedPolicy:
    """A `Learner` that cannot be trained.

    A failed request becomes a completion with `failure` and no text. The key appears in no
    completion or error.
    """

    version = 0
    repeats_batches = False

    def __init__(
        self,
        url: str,
        model: str,
        key: str | None,
        prompt_format: Format,
        *,
        timeout_s: float,
        max_recent_turns: int | None = None,
    ) -> None:
        """`timeout_s` is per turn, with retries; `max_recent_turns` None sends all turns."""
        self._url = url
        self._model = model
        self._id = model
        """The policy's name in requests."""
        self._endpoint = ChatEndpoint(url, key)
        self._format = prompt_format
        self._timeout_s = timeout_s
        self._max_recent_turns = max_recent_turns

    @property
    def name(self) -> str:
        """The names of the model and its server."""
        return f"{self._model} at {self._url}"

    def check_server(self) -> None:
        """Check that the server lists the policy, by name or by the folder it was loaded from.

        Raises UnreachableError without an answer, UsageError if the key or the model is refused.
        """
        served = self._endpoint.list_models(
            f"base_url: {self._url}", KEY_VARIABLE, ways=("start the server",)
        )
        found = id_of(self._model, served)
        if served and found is None:
            message = (
                f"model_name: {self._url} serves {listed_names(served)}, not {self._model!r};"
                " choose one of them"
            )
            raise UsageError(message)
        self._id = found or self._model

    def sample(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        """Return one completion per request, in order."""
        bodies = [self._request_body(request) for request in requests]
        texts = self._endpoint.complete(bodies, _require_text, self._timeout_s)
        return [self._completion(*pair) for pair in zip(requests, texts, strict=True)]

    def forget(self, episode: UUID) -> None:
        """No-op: no state is kept."""

    def update(self, trajectories: Sequence[Trajectory], settings: UpdateSettings) -> UpdateResult:  # noqa: ARG002  # the interface's
        """Raises UsageError, as does everything that needs weights."""
        self._refuse()

    def save_state(self, folder: Path) -> None:  # noqa: ARG002  # the interface's
        """Raises UsageError."""
        self._refuse()

    def load_state(self, folder: Path) -> None:  # noqa: ARG002  # the interface's
        """Raises UsageError."""
        self._refuse()

    def save_checkpoint(self, folder: Path) -> str:  # noqa: ARG002  # the interface's
        """Raises UsageError."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        message = f"{self.name} has its weights on a server: it can be evaluated, not trained"
        raise UsageError(message)

    def _request_body(self, request: SampleRequest) -> dict[str, JsonValue]:
        return {
            "model": self._id,
            "messages": chat_messages(request, self._format.system_prompt, self._max_recent_turns),
            "temperature": request.temperature,
            "max_tokens": request.max_tokens,
            "seed": request.seed % MAX_SEED,
        }

    def _completion(self, request: SampleRequest, text: str | ChatFailedError) -> Completion:
        if isinstance(text, ChatFailedError):
            return failed(f"{self.name} gave no completion: {text}")
        return Completion(text, self._format.codec.parse(text, *request.screen_px), None)


def _require_text(answer: ChatAnswer) -> str:
    if not answer.text.strip():
        message = "its answer is empty"
        raise UnreadableAnswerError(message)
    return answer.text

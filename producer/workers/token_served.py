"""A policy sampled by servers and trained by another process; records tokens. Imports no torch."""

from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from producer.chat_answer import ChatFailedError
from producer.codecs.codec import Codec
from producer.policy.policy import (
    Completion,
    PublishedPolicy,
    SampledTokens,
    SampleRequest,
    Turn,
    failed,
)
from producer.policy.prompts import anchor_of, next_anchor
from producer.policy.sampling_servers import (
    SamplingServers,
    ServerRequest,
    chat_request,
)
from producer.policy.token_answer import TokenAnswer


class TokenServedPolicy:
    """A `Policy` of one published version. Not thread-safe.

    Prompts are sent as messages; their tokens are those reported by the server. A failed request
    becomes a completion with `failure`.
    """

    repeats_batches = False

    def __init__(
        self,
        published: PublishedPolicy,
        codec: Codec,
        key: str | None,
        *,
        name: str,
        version: int,
        timeout_s: float,
        max_recent_turns: int | None,
    ) -> None:
        """`timeout_s` is per turn, with retries. `max_recent_turns`: see `next_anchor`."""
        self._servers = SamplingServers(
            *(published.urls, published.model, key, Path(published.adapters_dir)),
            timeout_s=timeout_s,
        )
        self._servers.use(published.adapter)
        self._published = published
        self._codec = codec
        self.name = name
        self.version = version
        self._max_recent_turns = max_recent_turns

    def sample(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        """Return one completion per request, in order."""
        asked = [self._request(request) for request in requests]
        answers = self._servers.complete(asked)
        return [self._completion(*pair) for pair in zip(requests, answers, strict=True)]

    def forget(self, episode: UUID) -> None:
        """No-op: no state is kept."""

    def _request(self, request: SampleRequest) -> ServerRequest:
        return chat_request(request, self._published.system_prompt, self._num_past(request))

    def _num_past(self, request: SampleRequest) -> int:
        """Number of past turns in the prompt; without screens all of them."""
        num_turns = len(request.history)
        if request.screenshot is None:
            return num_turns
        before = anchor_of(request.history)
        return num_turns - next_anchor(before, num_turns, self._max_recent_turns)

    def _completion(
        self, request: SampleRequest, answer: TokenAnswer | ChatFailedError
    ) -> Completion:
        if isinstance(answer, ChatFailedError):
            return failed(f"{self.name} gave no completion: {answer}")
        before = tokens_so_far(request.history)
        extends = bool(before) and answer.prompt_tokens[: len(before)] == before
        tokens = SampledTokens(
            prompt_extends=len(request.history) if extends else None,
            prompt_tokens=answer.prompt_tokens[len(before) if extends else 0 :],
            num_prompt_images=0 if request.screenshot is None else self._num_past(request) + 1,
            completion_tokens=answer.tokens,
            completion_logprobs=answer.logprobs,
            stop_reason="stop" if answer.tokens[-1] in self._published.end_tokens else "length",
        )
        actions = self._codec.parse(answer.text, *request.screen_px)
        return Completion(answer.text, actions, tokens, self.version)


def tokens_so_far(history: Sequence[Turn]) -> tuple[int, ...]:
    """Prompt and completion of the last turn, preceded by the turns that they extend."""
    so_far: tuple[int, ...] = ()
    for turn in history:
        sampled = turn.tokens
        begun = () if sampled.prompt_extends is None else so_far
        so_far = (*begun, *sampled.prompt_tokens, *sampled.completion_tokens)
    return so_far

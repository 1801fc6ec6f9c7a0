"""Has servers sample for the network trained here, and checks that they have the same weights.

A prompt without screenshots is sent as tokens. One with screenshots is sent as messages, the only
form in which servers accept images, and the answer contains the tokens that the server made of it.
If those differ from ours (the text of a sampled word may have two tokenisations), the turn is
recorded with the server's prompt, so that training always uses the prompt that was sampled from.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import torch
from pydantic import JsonValue

from producer.chat_answer import ChatFailedError
from producer.errors import UsageError
from producer.policy.adapter_settings import name_targets
from producer.policy.policy import SampledTokens, SampleRequest
from producer.policy.sampling_servers import (
    SamplingServers,
    ServerRequest,
    chat_request,
    parameters_of,
)
from producer.policy.sequences import join_turns
from producer.policy.token_answer import TokenAnswer
from producer.policy.torch_policy.forward import Prompt
from producer.policy.torch_policy.logprobs import completion_states, state_logprobs
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.screen_encoder import ScreenEncoder
from producer.policy.torch_policy.state import save_checkpoint

logger = logging.getLogger(__name__)

MAX_GAP: Final = 0.25
"""Largest mean |difference of log-probs|, nats, attributed to another kernel or dtype: in bfloat16
it was 0.007 (largest 0.03). Other weights differ by more than 1."""


class ServerSampler:
    """Samples from servers with the network's current adapter. Not thread-safe."""

    def __init__(
        self, servers: SamplingServers, network: Network, system_prompt: str | None
    ) -> None:
        self._servers = servers
        self._network = network
        self._system_prompt = system_prompt
        self._published_version: int | None = None
        self._has_warned = False

    def forget_version(self) -> None:
        """The weights were replaced: publish them before the next request."""
        self._published_version = None

    def sample(
        self, requests: Sequence[SampleRequest], prompts: Sequence[Prompt], version: int
    ) -> list[SampledTokens | ChatFailedError]:
        """One completion per request, with the weights of `version`. Raises as `publish`."""
        self.publish(version)
        asked = [self._request(*pair) for pair in zip(requests, prompts, strict=True)]
        answers = self._servers.complete(asked)
        return [self._tokens(*one) for one in zip(requests, prompts, answers, strict=True)]

    def publish(self, version: int) -> SamplingServers:
        """The servers, once they have the weights of `version`. Raises as their `publish`."""
        if self._published_version != version:
            self._servers.publish(self._save)
            self._published_version = version
        return self._servers

    @torch.no_grad()
    def check_gap(
        self, encoder: ScreenEncoder, request: SampleRequest, tokens: SampledTokens
    ) -> None:
        """Raises UsageError if log-probs of a first turn differ from those of the local network."""
        (sequence,) = join_turns([(request.screenshot, tokens)])
        states = completion_states(self._network, encoder, [[sequence]])
        ours_N = state_logprobs(self._network, states, request.temperature or 1.0)
        gap = float((ours_N.cpu() - torch.tensor(tokens.completion_logprobs)).abs().mean())
        if not gap <= MAX_GAP:
            message = (
                f"base_url: log-probs of the server differ from those of {self._network.name!r} by"
                f" {gap:.3g} nats on average, more than {MAX_GAP}: it has other weights, or gives"
                " log-probs before the temperature (vLLM: --logprobs-mode processed_logprobs;"
                " SGLang: unset SGLANG_RETURN_ORIGINAL_LOGPROB)"
            )
            raise UsageError(message)

    def _save(self, folder: Path) -> str:
        sha256 = save_checkpoint(folder, self._network)
        name_targets(folder, self._network.adapted.base_model.targeted_module_names)
        return sha256

    def _request(self, request: SampleRequest, prompt: Prompt) -> ServerRequest:
        if request.screenshot is not None:
            return chat_request(request, self._system_prompt, prompt.num_images - 1)
        tokens: list[JsonValue] = [*prompt.segment.tokens]
        body: dict[str, JsonValue] = {"prompt": tokens, "logprobs": 1}
        return ServerRequest(request.episode, body | parameters_of(request), "/completions")

    def _tokens(
        self, request: SampleRequest, prompt: Prompt, answer: TokenAnswer | ChatFailedError
    ) -> SampledTokens | ChatFailedError:
        if isinstance(answer, ChatFailedError):
            return answer
        ours = prompt.segment.tokens
        image = self._network.image_token
        theirs = _expanded(answer.prompt_tokens, ours, image)
        if image is not None and theirs.count(image) != ours.count(image):
            return ChatFailedError(
                f"the server's prompt has {theirs.count(image)} image tokens, the policy's"
                f" {ours.count(image)}: it resizes screenshots in another way; start it with the"
                " processor files of the policy that is trained"
            )
        if image is not None and image in answer.tokens:
            return ChatFailedError("the completion has an image placeholder without an image")
        is_same = theirs == ours
        # In later turns text that was sampled may be tokenised otherwise (`num_retokenised`).
        if not is_same and not request.history and not self._has_warned:
            self._has_warned = True
            logger.warning(
                "base_url: the server tokenised an episode's first prompt as %d tokens, this"
                " process as %d: check that both have the same chat template and tokenizer; the"
                " server's tokens are recorded and trained on",
                *(len(theirs), len(ours)),
            )
        ended = answer.tokens[-1] in self._network.end_tokens
        return SampledTokens(
            prompt_extends=prompt.extends if is_same else None,
            prompt_tokens=tuple(prompt.new_tokens if is_same else theirs),
            num_prompt_images=prompt.num_images,
            completion_tokens=answer.tokens,
            completion_logprobs=answer.logprobs,
            stop_reason="stop" if ended else "length",
        )


def _expanded(theirs: Sequence[int], ours: Sequence[int], image: int | None) -> list[int]:
    """The server's prompt with as many placeholders per image as ours.

    Some servers return one placeholder per image.
    """
    if image is None or image not in theirs:
        return list(theirs)
    runs = _runs(ours, image)
    if theirs.count(image) != len(runs):
        return list(theirs)
    left = iter(runs)
    return [
        token
        for single in theirs
        for token in ([image] * next(left) if single == image else [single])
    ]


def _runs(tokens: Sequence[int], image: int) -> list[int]:
    """Lengths of the runs of the placeholder."""
    runs, before = [], None
    for token in tokens:
        if token == image:
            if before == image:
                runs[-1] += 1
            else:
                runs.append(1)
        before = token
    return runs

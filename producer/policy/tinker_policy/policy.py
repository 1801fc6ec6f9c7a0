"""`TinkerPolicy`: a `Learner` that is sampled and trained at Tinker.

The service holds the adapter and the optimiser; this process holds prompts, codecs and the paths of
saved weights. An update produces new weights, which must be published before they can be sampled.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import tinker

from producer.algorithms.settings import UpdateSettings
from producer.codecs.codec import Format
from producer.errors import MismatchError, NotFoundError, UnreachableError
from producer.policy.learner import Trajectory, UpdateResult
from producer.policy.policy import Completion, SampledTokens, SampleRequest, context_full, failed
from producer.policy.prompts import PromptTooLongError
from producer.policy.remote_checkpoint import (
    REMOTE,
    RemoteCheckpoint,
    read_remote,
    write_remote,
)
from producer.policy.sequences import token_starts
from producer.policy.tinker_policy.failures import FAILURES, error_of, failing_to
from producer.policy.tinker_policy.policy_files import PolicyFiles
from producer.policy.tinker_policy.prompts import Prompt, Prompts
from producer.policy.tinker_policy.service import TinkerService
from producer.policy.tinker_policy.update import model_input, policy_gradient

STATE_TTL_S: Final = 30 * 24 * 3600
"""How long Tinker keeps a resume state; resume before it expires. Checkpoints do not expire."""
SEEDS: Final = 2**31
"""Number of seeds that every server of the protocol takes; SkyRL's are of 32 bits, signed."""


class TinkerPolicy:
    """A `Learner` whose weights are kept by Tinker. For one thread.

    A failed sampling request fails its attempt. A failed update, state or checkpoint raises the
    errors of `failures.error_of` and keeps the previous state. Waits are limited as described in
    `TinkerService.wait`.
    """

    repeats_batches = False

    def __init__(
        self,
        service: TinkerService,
        client: tinker.TrainingClient,
        files: PolicyFiles,
        prompts: Prompts,
        written: Format,
    ) -> None:
        """`client` belongs to the adapter that the training starts from."""
        self._service = service
        self._client = client
        self._files = files
        self._prompts = prompts
        self._codec = written.codec
        self._sampler: tinker.SamplingClient | None = None
        """Samples the current weights; None if they are not published."""
        self._version = 0
        self._kept: RemoteCheckpoint | None = None
        """The newest checkpoint of this process; its weights also serve as a resume state."""

    @property
    def name(self) -> str:
        """Hub id of the base model."""
        return self._files.name

    @property
    def version(self) -> int:
        """Number of updates so far."""
        return self._version

    @property
    def tokenizer(self) -> Any:
        """The tokenizer of the base model."""
        return self._files.tokenizer

    def token_starts(self, tokens: Sequence[int]) -> list[int]:
        """Index of the first character of each completion token in the completion's text."""
        return token_starts(tokens, self._text)

    def sample(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        """Return one completion per request, in order; all requests are sent at once.

        Text that exceeds the context is the agent's fault and gives an empty completion (see
        `context_full`). Raises UsageError if a screen exceeds it.
        """
        prompts: list[Prompt | PromptTooLongError] = []
        for request in requests:
            try:
                prompts.append(self._prompts.prompt(request))
            except PromptTooLongError as error:
                if request.screenshot is not None:
                    raise
                prompts.append(error)
        sampler = self._published() if requests else None
        sent_s = time.monotonic()
        under_way = [
            None
            if sampler is None or isinstance(prompt, PromptTooLongError)
            else sampler.sample(
                model_input(self._files, prompt.whole), 1, self._parameters(request)
            )
            for request, prompt in zip(requests, prompts, strict=True)
        ]
        return [
            context_full(str(prompt))
            if future is None or isinstance(prompt, PromptTooLongError)
            else self._completion(request, prompt, future, sent_s)
            for request, prompt, future in zip(requests, prompts, under_way, strict=True)
        ]

    def forget(self, episode: UUID) -> None:
        """No-op: no state is kept."""

    def update(self, trajectories: Sequence[Trajectory], settings: UpdateSettings) -> UpdateResult:
        """One policy-gradient update."""
        result = policy_gradient(self._service, self._client, self._files, trajectories, settings)
        self._version += 1
        self._sampler = None
        return result

    def save_state(self, folder: Path) -> None:
        """Save adapter and optimiser at Tinker, and write a reference to an existing folder."""
        if self._kept is not None and self._kept.version == self._version:
            write_remote(folder, self._kept)
            return
        weights = self._save_weights(f"state-{self._version:06d}", STATE_TTL_S)
        write_remote(folder, RemoteCheckpoint(weights, self._version, self.name))

    def load_state(self, folder: Path) -> None:
        """Restore the state that `save_state` saved.

        Raises NotFoundError if the folder has no reference or Tinker no longer has the state,
        MismatchError if it belongs to another base model.
        """
        saved = read_remote(folder)
        if saved is None:
            message = f"{folder} is not a state that Tinker saved: it has no {REMOTE}"
            raise NotFoundError(message)
        if saved.base_model != self.name:
            message = (
                f"{folder} is of {saved.base_model}, not of {self.name}; begin another training"
            )
            raise MismatchError(message)
        self._client = self._service.restore(saved.weights, with_optimizer=True)
        self._version = saved.version
        self._sampler = None
        self._kept = None

    def save_checkpoint(self, folder: Path) -> str:
        """Save the weights for training and sampling, and write a reference to the folder.

        Returns the sha256 of the reference file.
        """
        folder.mkdir(parents=True, exist_ok=True)
        name = f"step-{self._version:06d}"
        weights = self._save_weights(name, None)
        with failing_to("save sampler weights", self._service.key):
            saving = self._client.save_weights_for_sampler(name)
            sampler = self._service.wait(saving, "save sampler weights")
        self._kept = RemoteCheckpoint(weights, self._version, self.name, sampler.path)
        return write_remote(folder, self._kept)

    def _save_weights(self, name: str, ttl_s: int | None) -> str:
        with failing_to("save the weights", self._service.key):
            # A step that is trained again in this process reuses the name of the first time.
            saving = self._client.save_state(name, ttl_s, overwrite=True)
            return self._service.wait(saving, "save the weights").path

    def _published(self) -> tinker.SamplingClient:
        if self._sampler is None:
            self._sampler = self._service.publish(self._client)
        return self._sampler

    def _parameters(self, request: SampleRequest) -> tinker.SamplingParams:
        return tinker.SamplingParams(
            max_tokens=request.max_tokens,
            seed=request.seed % SEEDS,
            stop=list(self._files.end_tokens),
            temperature=request.temperature,
            top_p=request.top_p,
        )

    def _completion(
        self,
        request: SampleRequest,
        prompt: Prompt,
        future: tinker.APIFuture[tinker.SampleResponse],
        sent_s: float,
    ) -> Completion:
        try:
            (sequence,) = self._service.wait(future, "sample", since_s=sent_s).sequences
        except UnreachableError as error:
            return failed(str(error))
        except FAILURES as failure:
            return failed(str(error_of(failure, "sample", self._service.key)))
        tokens, logprobs = sequence.tokens, sequence.logprobs
        if not tokens or logprobs is None or len(logprobs) != len(tokens):
            return failed("Tinker's sample has no tokens, or not a log-prob for each")
        text = request.prefix + self._text(tokens)
        return Completion(
            text=text,
            actions=self._codec.parse(text, *request.screen_px),
            tokens=SampledTokens(
                prompt_extends=prompt.extends,
                prompt_tokens=tuple(prompt.new_tokens),
                num_prompt_images=prompt.num_images,
                completion_tokens=tuple(tokens),
                completion_logprobs=tuple(logprobs),
                # The next prompt starts differently if the completion lacks its end token.
                stop_reason="stop" if tokens[-1] in self._files.end_tokens else "length",
            ),
        )

    def _text(self, tokens: Sequence[int]) -> str:
        return str(self._files.tokenizer.decode(list(tokens), skip_special_tokens=True))

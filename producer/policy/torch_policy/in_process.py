"""The policy in the trainer's process: samples with transformers, trains with peft.

Called from one thread; blocks while it computes, on all cores (`cpu_parallel`). On a processor the
same batches give the same bits, on however many cores. The state it keeps
of running episodes is bounded by how many run, and dropped when the weights change: a completion's
log-probs always belong to one version.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import torch

from producer.algorithms.settings import UpdateSettings
from producer.codecs.codec import Codec
from producer.policy.compute_settings import DEFAULT_COMPUTE, ComputeSettings
from producer.policy.learner import Trajectory, UpdateResult
from producer.policy.policy import Completion, SampleRequest, context_full
from producer.policy.torch_policy.cpu_parallel import parallel_map
from producer.policy.torch_policy.episodes import (
    Episodes,
    Prompt,
    PromptTooLongError,
    sampled_tokens,
)
from producer.policy.torch_policy.kv_cache import EpisodeCaches
from producer.policy.torch_policy.learned_advantage import LearnedAdvantage
from producer.policy.torch_policy.learned_advantages import LEARNED, LearnedSettings
from producer.policy.torch_policy.merged_adapter import merged_adapter
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.optimizer import make_optimizer
from producer.policy.torch_policy.render import Renderer
from producer.policy.torch_policy.sampling import (
    DecodedBatch,
    SampledCompletion,
    SamplingParameters,
    decode,
    prefill,
)
from producer.policy.torch_policy.screen_encoder import ScreenEncoder
from producer.policy.torch_policy.state import load_state, save_checkpoint, save_state
from producer.policy.torch_policy.streamed_update import StreamedPolicyGradient
from producer.policy.torch_policy.threads import SMALL_WEIGHTS
from producer.policy.torch_policy.trial import check_runs
from producer.policy.torch_policy.update import policy_gradient
from producer.process_rewards.token_spans import starts_of

ROWS_PER_PART = 64
"""Rows that are decoded together, where a network is decoded in parts. The number of parts must not
follow the number of cores: a batch of another size changes the last bits."""
MIN_PARTS = 2
"""Of a batch of at least two prompts: two parts cost 1.1 times one on one core, four 1.4 times
(docs/decisions/same-seed.md)."""


Decode = Callable[[Sequence[int]], str]

"""Tokens -> their text, without special tokens."""


def token_starts(tokens: Sequence[int], decode: Decode) -> list[int]:
    """For every token the index of its first character in the decoded text."""
    texts = [decode([token]) for token in tokens]
    if "".join(texts) == decode(tokens):
        return starts_of(texts)
    # A character of several tokens, or a tokenizer that writes spaces by the token before.
    return [len(decode(tokens[:at])) for at in range(len(tokens))]


class InProcessPolicy:
    """A `Learner` on this machine's processor or accelerator."""

    def __init__(
        self,
        network: Network,
        codec: Codec,
        system_prompt: str | None = None,
        compute: ComputeSettings = DEFAULT_COMPUTE,
        *,
        max_recent_turns: int | None = None,
    ) -> None:
        """`system_prompt` describes the tools; None for a policy that was trained to know them.

        `max_recent_turns`: as in `context.next_anchor`. UsageError if the network computes no
        probabilities or its chat template does not append.
        """
        self._network = network
        self._codec = codec
        self._encoder = ScreenEncoder(network.visual, network.processor, compute.screen_cache_bytes)
        self._caches = EpisodeCaches(
            network.cache_shape, network.device, network.base.dtype, compute.kv_cache_bytes
        )
        self._compute = compute
        renderer = Renderer(network.processor, network.image_token, system_prompt)
        check_runs(network, self._encoder, renderer)
        self._episodes = Episodes(
            renderer,
            self._encoder,
            self._caches,
            max_recent_turns=max_recent_turns,
            max_context_tokens=network.max_context_tokens,
        )
        self._optimizer = make_optimizer(network.trainable())
        self._learned: dict[LearnedSettings, LearnedAdvantage] = {}
        """Of the advantages that an update computed or a checkpoint has."""
        self._version = 0
        self._num_weights = network.num_weights

    @property
    def name(self) -> str:
        """Folder or hub id of the base network."""
        return self._network.name

    @property
    def version(self) -> int:
        """Updates so far."""
        return self._version

    @property
    def repeats_batches(self) -> bool:
        """Whether it computes on a processor."""
        return self._network.device.type == "cpu"

    @torch.no_grad()
    def sample(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        """One completion per request, decoded as one batch; equal prompts are prefilled once.

        Words that exceed the context are the agent's doing: its completion is empty, see
        `context_full`. UsageError where a screen does.
        """
        shown = [request.screenshot for request in requests]
        screens = iter(self._encoder.encode([shot for shot in shown if shot is not None]))
        prompts: dict[int, Prompt] = {}
        completions: dict[int, Completion] = {}
        for index, (request, shot) in enumerate(zip(requests, shown, strict=True)):
            try:
                screen = None if shot is None else next(screens)
                prompts[index] = self._episodes.prompt(request, screen)
            except PromptTooLongError as error:
                if shot is not None:
                    raise
                completions[index] = context_full(str(error))
        if prompts:
            asked = [requests[index] for index in prompts]
            with merged_adapter(self._network):
                decoded = self._decode_all(asked, list(prompts.values()))
            for (index, prompt), completion in zip(prompts.items(), decoded, strict=True):
                completions[index] = self._parsed(requests[index], prompt, completion)
        return [completions[index] for index in range(len(requests))]

    @property
    def tokenizer(self) -> Any:
        """Of the base network."""
        return self._network.tokenizer

    def token_starts(self, tokens: Sequence[int]) -> list[int]:
        """For each token of a completion the index of its first character in its text."""
        return token_starts(tokens, self._text)

    def _text(self, tokens: Sequence[int]) -> str:
        return str(self._network.tokenizer.decode(list(tokens), skip_special_tokens=True))

    def forget(self, episode: UUID) -> None:
        """Free the episode's cache."""
        self._episodes.forget(episode)

    def update(self, trajectories: Sequence[Trajectory], settings: UpdateSettings) -> UpdateResult:
        """One policy-gradient update.

        Running episodes continue under the new weights, rebuilt from their records.
        """
        return self.update_in_parts(trajectories, settings, None)

    def update_in_parts(
        self,
        trajectories: Sequence[Trajectory],
        settings: UpdateSettings,
        lend: Callable[[], None] | None,
    ) -> UpdateResult:
        """As `update`; calls `lend` while it may be sampled from, by the weights before."""
        result = policy_gradient(
            self._network,
            self._encoder,
            self._optimizer,
            trajectories,
            settings,
            self._compute.gradient_checkpointing,
            learned=self._learned_of(settings, trajectories),
            lend=lend,
        )
        self._end_update()
        return result

    def begin_update(
        self, settings: UpdateSettings, num_minibatches: int
    ) -> StreamedPolicyGradient:
        """An update whose minibatches are computed between two calls of `sample`."""
        return StreamedPolicyGradient(
            self._network,
            self._encoder,
            self._optimizer,
            settings,
            self._compute.gradient_checkpointing,
            num_minibatches=num_minibatches,
            on_finished=self._end_update,
        )

    def _end_update(self) -> None:
        self._version += 1
        self._episodes.forget_all()

    def save_state(self, folder: Path) -> None:
        """Write adapter, optimiser and version into an existing folder, synced."""
        for learned in self._learned.values():
            learned.save_state(folder)
        save_state(folder, self._network, self._optimizer, self._version)

    def load_state(self, folder: Path) -> None:
        """Restore what `save_state` wrote, bit for bit."""
        self._version = load_state(folder, self._network, self._optimizer)
        self._learned = {}
        for settings, kind in LEARNED.items():
            if kind.has_state(folder):
                self._learned[settings] = kind(self._network, seed=0)
                self._learned[settings].load_state(folder)
        self._episodes.forget_all()

    def save_checkpoint(self, folder: Path) -> str:
        """Write the adapter in PEFT's layout, with the weights of learned advantages, if any.

        Returns the sha256 of the adapter's weights file.
        """
        for learned in self._learned.values():
            learned.save(folder)
        return save_checkpoint(folder, self._network)

    def load_learned(self, settings: LearnedSettings, folder: Path) -> None:
        """Take the weights of a learned advantage from a checkpoint, if it has them.

        Raises as `LearnedAdvantage.load`.
        """
        if LEARNED[settings].is_saved(folder):
            self._learned[settings] = LEARNED[settings](self._network, seed=0)
            self._learned[settings].load(folder)

    def _learned_of(
        self, settings: UpdateSettings, trajectories: Sequence[Trajectory]
    ) -> LearnedAdvantage | None:
        """The one that computes the advantages, made at the first batch that is trained on."""
        own = settings.learned_advantage
        if own is None or not any(trajectory.is_trained for trajectory in trajectories):
            return None
        kind = type(own)
        if kind not in self._learned:
            self._learned[kind] = LEARNED[kind](self._network, settings.seed)
        return self._learned[kind]

    def _decode_all(
        self, requests: list[SampleRequest], prompts: list[Prompt]
    ) -> list[SampledCompletion]:
        device = self._network.device
        num_parts = max(self._num_parts(len(prompts)), self._num_parts_in_memory(requests, prompts))
        parts = _partition_rows(prompts, num_parts)
        parameters = [
            SamplingParameters(request.temperature, request.max_tokens, request.seed, request.top_p)
            for request in requests
        ]

        def decode_rows(rows: list[int]) -> DecodedBatch:
            return self._decode([prompts[row] for row in rows], [parameters[row] for row in rows])

        completions: dict[int, SampledCompletion] = {}
        done = parallel_map(decode_rows, parts, device, self._network.max_workers)
        for rows, decoded in zip(parts, done, strict=True):
            self._episodes.store(
                [requests[row] for row in rows], [prompts[row] for row in rows], decoded
            )
            completions.update(zip(rows, decoded.completions, strict=True))
        self._caches.drop_excess()
        return [completions[row] for row in range(len(requests))]

    def _num_parts_in_memory(self, requests: list[SampleRequest], prompts: list[Prompt]) -> int:
        """Parts whose working caches keep within the bound of the episodes' caches."""
        if self._compute.kv_cache_bytes is None:
            return 1
        longest = max(
            prompt.num_cached + len(prompt.segment.tokens) + request.max_tokens
            for request, prompt in zip(requests, prompts, strict=True)
        )
        row_bytes = longest * self._network.cache_shape.position_bytes(self._network.base.dtype)
        return math.ceil(len(prompts) / max(1, self._compute.kv_cache_bytes // row_bytes))

    def _num_parts(self, num_rows: int) -> int:
        """A function of the network and of `num_rows` alone."""
        if self._num_weights > SMALL_WEIGHTS or self._network.device.type != "cpu":
            return 1
        return max(MIN_PARTS, math.ceil(num_rows / ROWS_PER_PART))

    def _decode(self, prompts: list[Prompt], parameters: list[SamplingParameters]) -> DecodedBatch:
        distinct = list({prompt.digest: prompt for prompt in reversed(prompts)}.values())
        row_of = {prompt.digest: row for row, prompt in enumerate(distinct)}
        capacity = (
            max(prompt.num_cached for prompt in distinct)
            + max(len(prompt.segment.tokens) for prompt in distinct)
            + max(parameter.max_tokens for parameter in parameters)
        )
        shared = self._caches.load([prompt.slot for prompt in distinct], capacity)
        prefilled = prefill(
            self._network,
            shared,
            [prompt.segment for prompt in distinct],
            [prompt.num_cached for prompt in distinct],
        )
        rows = [row_of[prompt.digest] for prompt in prompts]
        return decode(
            self._network, shared.select_rows(rows), prefilled.select_rows(rows), parameters
        )

    def _parsed(
        self, request: SampleRequest, prompt: Prompt, completion: SampledCompletion
    ) -> Completion:
        text = request.prefix + self._network.tokenizer.decode(
            completion.tokens, skip_special_tokens=True
        )
        shot = request.screenshot
        width_px, height_px = (0, 0) if shot is None else (shot.width_px, shot.height_px)
        return Completion(
            text=text,
            actions=self._codec.parse(text, width_px, height_px),
            tokens=sampled_tokens(prompt, completion),
        )


def _partition_rows(prompts: Sequence[Prompt], num_parts: int) -> list[list[int]]:
    """Row indices in at most `num_parts` parts of similar size; equal prompts share a part."""
    same: dict[bytes, list[int]] = {}
    for index, prompt in enumerate(prompts):
        same.setdefault(prompt.digest, []).append(index)
    parts: list[list[int]] = [[] for _ in range(num_parts)]
    for indices in sorted(same.values(), key=len, reverse=True):
        min(parts, key=len).extend(indices)
    return [sorted(part) for part in parts if part]

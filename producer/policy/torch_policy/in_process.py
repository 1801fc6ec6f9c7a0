"""The policy in the trainer's process.

Transformers and peft, sampled as a batch in each lane, trained by policy gradient.

Implements `Learner`. Called from one thread; blocks while it computes, on as many cores as there
are (`lanes`). What it keeps of running episodes is bounded by how many run and is dropped when the
weights change, so a completion's log-probs always belong to one version.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from uuid import UUID

import torch

from producer.environments.environment import Screenshot
from producer.policy.learner import Trajectory, UpdateResult, UpdateSettings
from producer.policy.policy import Completion, SampleRequest
from producer.policy.torch_policy.cpu_parallel import num_workers, parallel_map
from producer.policy.torch_policy.episodes import Episodes, Prompt, sampled_tokens
from producer.policy.torch_policy.kv_cache import EpisodeCaches, WorkingCache
from producer.policy.torch_policy.merged import adapter_merged
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.render import Renderer
from producer.policy.torch_policy.sample import Draw, Drawn, Prefilled, decode, prefill
from producer.policy.torch_policy.screen_encoder import ScreenEncoder
from producer.policy.torch_policy.state import load_state, save_checkpoint, save_state
from producer.policy.torch_policy.update import make_optimizer, policy_gradient
from schemas.turn import TakenAction


class Codec(Protocol):
    """How this policy's family writes actions."""

    def parse(self, text: str, width_px: int, height_px: int) -> tuple[TakenAction, ...]:
        """The actions of a completion; what cannot be understood is an action with an error."""
        ...


@dataclass(frozen=True, slots=True)
class _Said:
    """What came of a part of a batch, row by row."""

    drawn: list[Drawn]
    after: Prefilled
    working: WorkingCache


class InProcessPolicy:
    """A `Learner` on this machine's processor or accelerator."""

    def __init__(self, network: Network, codec: Codec, system_prompt: str | None = None) -> None:
        """`system_prompt`: what the policy is told about its tools; None.

        It was trained to know.
        """
        self._network = network
        self._codec = codec
        self._encoder = ScreenEncoder(network.base.model.visual, network.processor)
        self._caches = EpisodeCaches(network.cache_shape, network.device, network.base.dtype)
        renderer = Renderer(network.processor, network.image_token, system_prompt)
        self._episodes = Episodes(renderer, self._encoder, self._caches)
        self._optimizer = make_optimizer(network)
        self._version = 0

    @property
    def name(self) -> str:
        """Folder or hub id of the base."""
        return self._network.name

    @property
    def version(self) -> int:
        """Updates so far."""
        return self._version

    @torch.no_grad()
    def sample(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        """One completion per request, all decoded at once; equal prompts are prefilled once."""
        if not requests:
            return []
        seen = self._encoder.encode([request.screenshot for request in requests])
        prompts = [
            self._episodes.prompt(request, screen)
            for request, screen in zip(requests, seen, strict=True)
        ]
        with adapter_merged(self._network):
            drawn = self._draw(list(requests), prompts)
        return [
            self._completion(request, prompt, said)
            for request, prompt, said in zip(requests, prompts, drawn, strict=True)
        ]

    def forget(self, episode: UUID) -> None:
        """Free the episode's cache."""
        self._episodes.forget(episode)

    def update(self, trajectories: Sequence[Trajectory], settings: UpdateSettings) -> UpdateResult:
        """One batch of policy gradient.

        Running episodes go on with the new weights from their records.
        """
        result = policy_gradient(
            self._network, self._encoder, self._optimizer, trajectories, settings
        )
        self._version += 1
        self._episodes.forget_all()
        return result

    def save_state(self, folder: Path) -> None:
        """Adapter, optimiser and version into an existing folder, synced."""
        save_state(folder, self._network, self._optimizer, self._version)

    def load_state(self, folder: Path) -> None:
        """The inverse, bit for bit."""
        self._version = load_state(folder, self._network, self._optimizer)
        self._episodes.forget_all()

    def save_checkpoint(self, folder: Path) -> str:
        """The adapter in PEFT's layout; the sha256 of its weights file."""
        return save_checkpoint(folder, self._network)

    def _draw(self, requests: list[SampleRequest], prompts: list[Prompt]) -> list[Drawn]:
        parts = _share(prompts, num_workers(self._network.device))
        draws = [
            Draw(request.temperature, request.max_tokens, request.seed) for request in requests
        ]

        def run(rows: list[int]) -> _Said:
            return self._run([prompts[row] for row in rows], [draws[row] for row in rows])

        drawn: dict[int, Drawn] = {}
        for rows, said in zip(parts, parallel_map(run, parts, self._network.device), strict=True):
            self._episodes.keep(
                [requests[row] for row in rows],
                [prompts[row] for row in rows],
                said.drawn,
                said.after,
                said.working,
            )
            drawn.update(zip(rows, said.drawn, strict=True))
        return [drawn[row] for row in range(len(requests))]

    def _run(self, prompts: list[Prompt], draws: list[Draw]) -> _Said:
        distinct = list({prompt.digest: prompt for prompt in reversed(prompts)}.values())
        row_of = {prompt.digest: row for row, prompt in enumerate(distinct)}
        max_tokens = max(draw.max_tokens for draw in draws)
        capacity = (
            max(prompt.num_cached for prompt in distinct)
            + max(len(prompt.chunk.tokens) for prompt in distinct)
            + max_tokens
        )
        shared = self._caches.take([prompt.slot for prompt in distinct], capacity)
        prefilled = prefill(
            self._network,
            shared,
            [prompt.chunk for prompt in distinct],
            [prompt.num_cached for prompt in distinct],
        )
        rows = [row_of[prompt.digest] for prompt in prompts]
        each = Prefilled(
            prefilled.logits_BV[rows],
            [prefilled.num_cached[row] for row in rows],
            [prefilled.ends[row] for row in rows],
        )
        working = shared.rows(rows)
        return _Said(decode(self._network, working, each, draws), each, working)

    def _completion(self, request: SampleRequest, prompt: Prompt, drawn: Drawn) -> Completion:
        text = self._network.processor.tokenizer.decode(drawn.tokens, skip_special_tokens=True)
        screenshot: Screenshot = request.screenshot
        actions = self._codec.parse(text, screenshot.width_px, screenshot.height_px)
        return Completion(text, actions, sampled_tokens(prompt, drawn, self._num_images(request)))

    def _num_images(self, request: SampleRequest) -> int:
        return len(request.history) + 1


def _share(prompts: Sequence[Prompt], num_parts: int) -> list[list[int]]:
    """Indices of the prompts in at most `num_parts` parts of about the same size.

    Equal prompts stay together.
    """
    same: dict[bytes, list[int]] = {}
    for index, prompt in enumerate(prompts):
        same.setdefault(prompt.digest, []).append(index)
    parts: list[list[int]] = [[] for _ in range(num_parts)]
    for indices in sorted(same.values(), key=len, reverse=True):
        min(parts, key=len).extend(indices)
    return [sorted(part) for part in parts if part]

"""The policy in the trainer's process: samples with transformers, trains with peft.

Called from one thread; blocks while it computes on all cores (`cpu_parallel`). On a CPU the same
batches give the same bits, whatever the number of cores. The state it keeps is bounded by the
number of running episodes, and dropped when the weights change: all log-probs of a completion
belong to one version.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import torch

from producer.algorithms.settings import GaeSettings, PrimeSettings, UpdateSettings
from producer.chat_answer import ChatFailedError
from producer.codecs.codec import Codec
from producer.errors import UnreachableError, UsageError
from producer.policy.compute_settings import DEFAULT_COMPUTE, ComputeSettings, PolicySettings
from producer.policy.learner import Trajectory, UpdateResult
from producer.policy.policy import (
    Completion,
    PublishedPolicy,
    SampledTokens,
    SampleRequest,
    context_full,
    failed,
)
from producer.policy.prompts import PromptLimits, PromptTooLongError
from producer.policy.sequences import token_starts
from producer.policy.torch_policy.device_memory import out_of_memory
from producer.policy.torch_policy.episodes import Episodes, sampled_tokens
from producer.policy.torch_policy.forward import (
    EpisodeCaches,
    Prompt,
    Segment,
    compute_logits,
    hidden_states,
    pad_segments,
)
from producer.policy.torch_policy.gae_advantage import GaeAdvantage
from producer.policy.torch_policy.hub import first_line
from producer.policy.torch_policy.learned_advantage import LearnedAdvantage
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.optimizer import make_optimizer
from producer.policy.torch_policy.prime_advantage import PrimeAdvantage
from producer.policy.torch_policy.ranks import Ranks, Update, current_ranks, state_of
from producer.policy.torch_policy.render import Renderer
from producer.policy.torch_policy.sampling import (
    Decoder,
    SamplingParameters,
)
from producer.policy.torch_policy.screen_encoder import ScreenEncoder, blank_screenshot
from producer.policy.torch_policy.state import load_state, save_checkpoint, save_state
from producer.policy.torch_policy.update import policy_gradient

if TYPE_CHECKING:
    from producer.policy.torch_policy.server_sampler import ServerSampler


_SIDE_PX: Final = 64
LearnedSettings = type[GaeSettings | PrimeSettings]

LEARNED: Final[dict[LearnedSettings, type[LearnedAdvantage]]] = {
    GaeSettings: GaeAdvantage,
    PrimeSettings: PrimeAdvantage,
}


class InProcessPolicy:
    """A `Learner` on this machine's CPU or accelerator."""

    def __init__(
        self,
        network: Network,
        codec: Codec,
        system_prompt: str | None = None,
        compute: ComputeSettings = DEFAULT_COMPUTE,
        *,
        max_recent_turns: int | None = None,
        server_sampler: "ServerSampler | None" = None,
    ) -> None:
        """`system_prompt` describes the tools; None for a policy that was trained to know them.

        `max_recent_turns`: see `prompts.next_anchor`. `server_sampler`: None samples in this
        process. Raises UsageError if the network's probabilities are not finite or its chat
        template does not append.
        """
        self._network = network
        self._codec = codec
        self._system_prompt = system_prompt
        self._encoder = ScreenEncoder(network.visual, network.processor, compute.screen_cache_bytes)
        self._caches = EpisodeCaches(
            network.cache_shape, network.device, network.base.dtype, compute.kv_cache_bytes
        )
        self._compute = compute
        self._decoder = Decoder(network, self._caches, compute)
        renderer = Renderer(network.processor, network.image_token, system_prompt)
        check_runs(network, self._encoder, renderer)
        self._episodes = Episodes(
            renderer,
            self._encoder,
            self._caches,
            PromptLimits(max_recent_turns, network.max_context_tokens),
        )
        self._optimizer = make_optimizer(network.trainable())
        self._learned: dict[LearnedSettings, LearnedAdvantage] = {}
        """Learned advantages that an update has computed or a checkpoint contains."""
        self._version = 0
        self._server_sampler = server_sampler
        self.opening: PolicySettings | None = None
        """How other ranks open the same policy; None if it was not opened from a folder."""
        self._is_led = False
        """Whether the other ranks have the policy and its state."""

    @property
    def name(self) -> str:
        """Folder or hub id of the base network."""
        return self._network.name

    @property
    def version(self) -> int:
        """Number of updates so far."""
        return self._version

    @property
    def repeats_batches(self) -> bool:
        """Whether it samples in this process, on a CPU."""
        return self._network.device.type == "cpu" and self._server_sampler is None

    def sample(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        """One completion per request, decoded as one batch; equal prompts are prefilled once.

        Text that exceeds the context is the agent's fault and gives an empty completion (see
        `context_full`). Raises UsageError if a screen exceeds it, CuaTrainError without memory.
        """
        try:
            return self._sample(requests)
        except torch.OutOfMemoryError as error:
            what = f"sampling for {len(requests)} rollouts at once"
            raise out_of_memory(what, error) from error

    @torch.no_grad()
    def _sample(self, requests: Sequence[SampleRequest]) -> list[Completion]:
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
            own = list(prompts.values())
            sampled = (
                self._sample_here(asked, own)
                if self._server_sampler is None
                else self._server_sampler.sample(asked, own, self._version)
            )
            for index, request, tokens in zip(prompts, asked, sampled, strict=True):
                completions[index] = self._parsed(request, tokens)
        return [completions[index] for index in range(len(requests))]

    def check_servers(self, request: SampleRequest) -> None:
        """Sample a first turn on the servers. Raises UsageError if their weights differ.

        Raises as `SamplingServers.publish`, and UnreachableError without a completion.
        """
        if self._server_sampler is None:
            return
        completion = self.sample([request])[0]
        if completion.tokens is None:
            message = f"base_url: a first completion failed: {completion.failure}"
            raise UnreachableError(message)
        self._server_sampler.check_gap(self._encoder, request, completion.tokens)
        self.forget(request.episode)

    def publish(self) -> PublishedPolicy:
        """Load this version into the servers, so that other processes can sample it.

        Raises ValueError without servers, and as `SamplingServers.publish`.
        """
        if self._server_sampler is None:
            message = "the policy is sampled in this process"
            raise ValueError(message)
        servers = self._server_sampler.publish(self._version)
        return PublishedPolicy(
            urls=servers.urls,
            model=servers.model,
            adapter=servers.adapter,
            adapters_dir=str(servers.adapters_dir.absolute()),
            codec=self._codec.name,
            system_prompt=self._system_prompt,
            end_tokens=tuple(sorted(self._network.end_tokens)),
        )

    @property
    def tokenizer(self) -> Any:
        """The tokenizer of the base network."""
        return self._network.tokenizer

    def token_starts(self, tokens: Sequence[int]) -> list[int]:
        """Index of the first character of each completion token in the completion's text."""
        return token_starts(tokens, self._text)

    def _text(self, tokens: Sequence[int]) -> str:
        return str(self._network.tokenizer.decode(list(tokens), skip_special_tokens=True))

    def forget(self, episode: UUID) -> None:
        """Free the episode's cache."""
        self._episodes.forget(episode)

    def update(self, trajectories: Sequence[Trajectory], settings: UpdateSettings) -> UpdateResult:
        """Do one policy-gradient update.

        Running episodes continue with the new weights; their state is rebuilt from their records.
        """
        return self.update_in_parts(trajectories, settings, None)

    def update_in_parts(
        self,
        trajectories: Sequence[Trajectory],
        settings: UpdateSettings,
        lend: Callable[[], None] | None,
    ) -> UpdateResult:
        """As `update`; calls `lend` when the policy may be sampled, with the previous weights."""
        ranks = current_ranks()
        if ranks is not None and ranks.rank == 0:
            self._lead(ranks, Update(trajectories, settings))
        result = policy_gradient(
            self._network,
            self._encoder,
            self._optimizer,
            trajectories,
            settings,
            self._compute.gradient_checkpointing,
            learned=self._learned_of(settings, trajectories),
            lend=lend,
            ranks=ranks,
        )
        self._version += 1
        self._episodes.forget_all()
        return result

    def _lead(self, ranks: Ranks, update: Update) -> None:
        """Have the other ranks begin the update with this rank's weights."""
        if not self._is_led:
            ranks.send(self.opening)
            ranks.send(state_of(self))
            self._is_led = True
        ranks.send(update)

    def save_state(self, folder: Path) -> None:
        """Write adapter, optimiser and version to an existing folder, synced to disk."""
        for learned in self._learned.values():
            learned.save_state(folder)
        save_state(folder, self._network, self._optimizer, self._version)

    def load_state(self, folder: Path) -> None:
        """Restore what `save_state` wrote, bit for bit."""
        self._version = load_state(folder, self._network, self._optimizer)
        self._is_led = False
        if self._server_sampler is not None:
            self._server_sampler.forget_version()
        self._learned = {}
        for settings in LEARNED:
            self.load_learned(settings, folder)
        self._episodes.forget_all()

    def save_checkpoint(self, folder: Path) -> str:
        """Write the adapter in PEFT's layout, with the weights of learned advantages, if any.

        Returns the sha256 of the adapter's weights file.
        """
        for learned in self._learned.values():
            learned.save(folder)
        return save_checkpoint(folder, self._network)

    def load_learned(self, settings: LearnedSettings, folder: Path) -> None:
        """Load a learned advantage from a checkpoint or a state, if it has one.

        Raises as `LearnedAdvantage.load`.
        """
        if (file := LEARNED[settings].file_in(folder)) is not None:
            self._learned[settings] = LEARNED[settings](self._network, seed=0)
            self._learned[settings].load(file)

    def _learned_of(
        self, settings: UpdateSettings, trajectories: Sequence[Trajectory]
    ) -> LearnedAdvantage | None:
        """The learned advantage of the settings, created for the first batch trained on."""
        own = settings.learned_advantage
        if own is None or not any(trajectory.is_trained for trajectory in trajectories):
            return None
        kind = type(own)
        if kind not in self._learned:
            self._learned[kind] = LEARNED[kind](self._network, settings.seed)
        return self._learned[kind]

    def _sample_here(
        self, requests: list[SampleRequest], prompts: list[Prompt]
    ) -> list[SampledTokens]:
        parameters = [
            SamplingParameters(request.temperature, request.max_tokens, request.seed, request.top_p)
            for request in requests
        ]
        sampled: dict[int, SampledTokens] = {}
        for rows, decoded in self._decoder.decode(prompts, parameters):
            own = [prompts[row] for row in rows]
            self._episodes.store([requests[row] for row in rows], own, decoded)
            for row, prompt, completion in zip(rows, own, decoded.completions, strict=True):
                sampled[row] = sampled_tokens(prompt, completion)
        self._caches.drop_excess()
        return [sampled[row] for row in range(len(requests))]

    def _parsed(
        self, request: SampleRequest, tokens: SampledTokens | ChatFailedError
    ) -> Completion:
        if isinstance(tokens, ChatFailedError):
            return failed(str(tokens))
        text = request.prefix + self._text(tokens.completion_tokens)
        actions = self._codec.parse(text, *request.screen_px)
        version = None if self._server_sampler is None else self._version
        return Completion(text, actions, tokens, version)


@torch.no_grad()
def check_runs(network: Network, encoder: ScreenEncoder, renderer: Renderer) -> None:
    """Raises UsageError if the policy cannot compute finite logits of a first turn.

    Catches faults of a configuration or weights in which every tensor has its place: mismatched
    dimensions, and weights that are not finite numbers.
    """
    try:
        screens = (
            encoder.encode([blank_screenshot((_SIDE_PX, _SIDE_PX))])
            if network.visual is not None
            else []
        )
        tokens = renderer.first_turn("Try", screens[0].grid if screens else None)
        hidden_1TD = hidden_states(network, pad_segments([Segment(tokens, screens)], network))
        logits_V = compute_logits(network, hidden_1TD[0, -1])
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, ValueError, TypeError, IndexError, AttributeError) as error:
        message = (
            f"policy {network.name!r} cannot compute ({first_line(error)}); check that its"
            " config.json belongs to its weights"
        )
        raise UsageError(message) from error
    if not torch.isfinite(logits_V).all():
        message = (
            f"policy {network.name!r} computes logits that are not numbers; its weights are damaged"
            " or too large for this dtype, download it again"
        )
        raise UsageError(message)

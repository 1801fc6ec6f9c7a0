"""Samples for many requests at once: one thread, one network, any number of adapters.

Requests that arrive within `BATCH_WAIT_S` of each other for one adapter are decoded as one batch.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final, TypeVar

import torch

from producer.environments.environment import Screenshot
from producer.errors import UsageError
from producer.policy.compute_settings import ComputeSettings
from producer.policy.torch_policy.adapters import POLICY_ADAPTER, add_saved_adapter
from producer.policy.torch_policy.cpu_parallel import use_threads
from producer.policy.torch_policy.forward import EpisodeCaches, new_prompt
from producer.policy.torch_policy.loading import load_network
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.placement import choose_placement
from producer.policy.torch_policy.render import Renderer
from producer.policy.torch_policy.sampling import Decoder, SampledCompletion, SamplingParameters
from producer.policy.torch_policy.screen_encoder import ScreenEncoder

logger = logging.getLogger(__name__)

BATCH_WAIT_S: Final = 0.01
MAX_BATCH: Final = 64

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Answer:
    """A completion and the prompt that it continues."""

    prompt_tokens: list[int]
    completion: SampledCompletion
    text: str
    token_texts: list[str]


@dataclass(frozen=True, slots=True)
class _Job:
    adapter: str
    tokens: list[int]
    screenshots: Sequence[Screenshot]
    parameters: SamplingParameters
    future: "Future[Answer]"


class ServingEngine:
    """A network and the thread that runs it. Thread-safe."""

    def __init__(self, name: str, network: Network, compute: ComputeSettings) -> None:
        """`name` selects the policy without an adapter."""
        self.name = name
        self.names = tuple(dict.fromkeys([name, network.name]))
        """Names that the policy answers to: `name`, and the folder or hub id that trainers use."""
        self._network = network
        self._encoder = ScreenEncoder(network.visual, network.processor)
        self._renderer = Renderer(network.processor, network.image_token)
        caches = EpisodeCaches(network.cache_shape, network.device, network.base.dtype)
        self._decoder = Decoder(network, caches, compute)
        self._adapters: dict[str, str] = {}
        """Maps an adapter's name to its folder."""
        self._jobs: SimpleQueue[_Job | Callable[[], None]] = SimpleQueue()
        threading.Thread(target=self._run, name="serving", daemon=True).start()

    @classmethod
    def open(cls, folder: str, name: str, compute: ComputeSettings) -> "ServingEngine":
        """Load the policy from a folder or hub id. Raises as `load_network` does."""
        placement = choose_placement(compute.device, compute.dtype)
        network = load_network(folder, lora_rank=1, seed=0, placement=placement)
        use_threads(folder, network.num_weights, network.device, compute.cpu_threads)
        return cls(name, network, compute)

    @property
    def adapters(self) -> dict[str, str]:
        """The loaded adapters, as a map from name to folder."""
        return dict(self._adapters)

    @property
    def sees_screens(self) -> bool:
        """Whether messages may contain images."""
        return self._network.architecture.sees_screens

    def load_adapter(self, name: str, folder: str) -> None:
        """Load an adapter.

        Raises UsageError or NotFoundError if that fails or the name is taken.
        """
        if name in {*self.names, POLICY_ADAPTER}:
            message = f"the name {name!r} is the policy's own; choose another lora_name"
            raise UsageError(message)

        def load() -> None:
            if name in self._adapters:
                message = f"the lora adapter {name!r} has already been loaded"
                raise UsageError(message)
            fingerprint = self._network.base_fingerprint
            add_saved_adapter(self._network.adapted, name, Path(folder), fingerprint)
            self._adapters[name] = folder

        self._in_turn(load)

    def unload_adapter(self, name: str) -> bool:
        """Unload an adapter. Returns False if there is none of this name."""

        def unload() -> bool:
            if self._adapters.pop(name, None) is None:
                return False
            self._network.adapted.delete_adapter(name)
            return True

        return self._in_turn(unload)

    def prompt(
        self, messages: Sequence[dict[str, object]], screenshots: Sequence[Screenshot]
    ) -> list[int]:
        """Render a dialogue as tokens. Raises UsageError if it cannot be rendered."""
        return self._in_turn(
            lambda: self._renderer.dialogue(
                messages, [screen.grid for screen in self._encoder.encode(screenshots)]
            )
        )

    def complete(
        self,
        model: str,
        tokens: list[int],
        screenshots: Sequence[Screenshot],
        parameters: SamplingParameters,
    ) -> "Future[Answer]":
        """Start a completion by the policy `model`: the base policy's name or an adapter's.

        Raises UsageError for a prompt that does not fit or contains unknown tokens; the future
        raises KeyError if there is no such model.
        """
        limit = self._network.max_context_tokens
        if limit is not None and len(tokens) + parameters.max_tokens > limit:
            message = (
                f"the policy takes {limit:,} tokens, but the prompt has {len(tokens):,} and"
                f" max_tokens is {parameters.max_tokens:,}"
            )
            raise UsageError(message)
        if not tokens or not all(0 <= token < self._network.vocabulary for token in tokens):
            message = f"prompt: token ids from 0 to {self._network.vocabulary - 1}, at least one"
            raise UsageError(message)
        future: Future[Answer] = Future()
        adapter = self.name if model in self.names else model
        self._jobs.put(_Job(adapter, tokens, screenshots, parameters, future))
        return future

    def _in_turn(self, act: Callable[[], Result]) -> Result:
        """Run `act` between two batches and return its result."""
        future: Future[Result] = Future()
        self._jobs.put(lambda: _settle(future, act))
        return future.result()

    def _run(self) -> None:
        while True:
            jobs = self._next_jobs()
            for adapter in dict.fromkeys(job.adapter for job in jobs):
                own = [job for job in jobs if job.adapter == adapter]
                try:
                    answers = self._answers(adapter, own)
                except Exception as error:  # one batch must not end the server
                    logger.exception("a batch of %d requests failed", len(own))
                    for job in own:
                        job.future.set_exception(error)
                else:
                    for job, answer in zip(own, answers, strict=True):
                        job.future.set_result(answer)

    def _next_jobs(self) -> list[_Job]:
        """The next batch of jobs, after running everything queued before them."""
        jobs: list[_Job] = []
        until_s = 0.0
        while len(jobs) < MAX_BATCH:
            try:
                left_s = max(0.0, until_s - time.monotonic())
                item = self._jobs.get(timeout=left_s if jobs else None)
            except Empty:
                break
            if not isinstance(item, _Job):
                item()
            elif item.future.set_running_or_notify_cancel():
                until_s = until_s or time.monotonic() + BATCH_WAIT_S
                jobs.append(item)
        return jobs

    @torch.no_grad()
    def _answers(self, adapter: str, jobs: Sequence[_Job]) -> list[Answer]:
        if adapter != self.name and adapter not in self._adapters:
            message = f"there is no model {adapter!r}"
            raise KeyError(message)
        adapted = self._network.adapted
        adapted.set_adapter(POLICY_ADAPTER if adapter == self.name else adapter)
        prompts = [new_prompt(job.tokens, self._encoder.encode(job.screenshots)) for job in jobs]
        found: dict[int, SampledCompletion] = {}
        for rows, decoded in self._decoder.decode(prompts, [job.parameters for job in jobs]):
            found.update(zip(rows, decoded.completions, strict=True))
        return [self._answer(job.tokens, found[row]) for row, job in enumerate(jobs)]

    def _answer(self, prompt: list[int], completion: SampledCompletion) -> Answer:
        tokenizer = self._network.tokenizer
        text = tokenizer.decode(completion.tokens, skip_special_tokens=True)
        texts = [str(tokenizer.decode([token])) for token in completion.tokens]
        return Answer(prompt, completion, str(text), texts)


def _settle(future: "Future[Result]", act: Callable[[], Result]) -> None:
    try:
        future.set_result(act())
    except Exception as error:  # noqa: BLE001  # raised where the result is asked for
        future.set_exception(error)

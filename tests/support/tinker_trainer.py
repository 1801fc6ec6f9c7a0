"""What a stand-in for Tinker computes: log-probs, losses, optimiser steps and samples.

The network and the losses are the trainer's own. Every target of a datum is scored, as the service
does: which tokens were sampled is not in its protocol, only advantages and weights of 0 elsewhere.

Axes: N scored tokens of a sequence.
"""

import io
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from producer.algorithms.losses import LOSSES
from producer.algorithms.ratio_bounds import Clip
from producer.environments.environment import Screenshot
from producer.policy.sequences import TokenSequence
from producer.policy.torch_policy.adapters import (
    adapter_weights,
    load_adapter_weights,
    merged_adapter,
)
from producer.policy.torch_policy.forward import EpisodeCaches, Segment
from producer.policy.torch_policy.loading import load_network
from producer.policy.torch_policy.logprobs import completion_logprobs, micro_batches
from producer.policy.torch_policy.optimizer import make_optimizer
from producer.policy.torch_policy.prefill import prefill
from producer.policy.torch_policy.sampling import (
    SampledCompletion,
    SamplingParameters,
    decode,
)
from producer.policy.torch_policy.screen_encoder import ScreenEncoder

Chunk = list[int] | bytes
"""Text as tokens, or a PNG."""
Weights = dict[str, Tensor]


class RefusedError(Exception):
    """The user's mistake, as the service would report it."""


@dataclass(frozen=True)
class Example:
    """A datum."""

    chunks: Sequence[Chunk]
    inputs: dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Prompt:
    """A prompt to sample from."""

    chunks: Sequence[Chunk]
    parameters: SamplingParameters
    stop: tuple[int, ...] | None


@dataclass(frozen=True)
class Saved:
    """An adapter that was saved."""

    rank: int
    weights: Weights
    optimizer: dict[str, Any] = field(default_factory=dict)


class SmallTrainer:
    """One adapter of the policy in a folder."""

    def __init__(self, folder: str, rank: int, seed: int) -> None:
        torch.set_num_threads(1)
        self.rank = rank
        self.network = load_network(folder, rank, seed)
        self._encoder = ScreenEncoder(self.network.visual, self.network.processor)
        self._optimizer = make_optimizer(self.network.trainable())

    def forward_backward(
        self, data: Sequence[Example], loss_fn: str, config: dict[str, float], *, backward: bool
    ) -> list[NDArray[np.float32]]:
        """Log-probs of every target of each datum; adds gradients."""
        sequences = [self._sequence(one) for one in data]
        found: list[NDArray[np.float32]] = [np.zeros(0, np.float32)] * len(data)
        for rows in micro_batches(self.network, sequences):
            batch = [at for row in rows for at in row]
            with torch.set_grad_enabled(backward):
                logprobs = completion_logprobs(
                    self.network, self._encoder, [sequences[at] for at in batch], 1.0
                )
                sizes = [len(sequences[at].sampled_at) for at in batch]
                losses = torch.stack(
                    [
                        _loss(own_N, sequences[at], data[at], loss_fn, config)
                        for at, own_N in zip(batch, torch.split(logprobs, sizes), strict=True)
                    ]
                )
            if backward:
                torch.autograd.backward(losses.sum())
            for at, own_N in zip(batch, torch.split(logprobs.detach(), sizes), strict=True):
                every = np.zeros(len(sequences[at].tokens) - 1, np.float32)
                every[_targets(sequences[at])] = own_N.numpy()
                found[at] = every
        return found

    def optimizer_step(self, params: dict[str, Any]) -> float:
        """One step of AdamW; the gradient's norm before clipping."""
        limit = params["grad_clip_norm"] or float("inf")
        norm = float(torch.nn.utils.clip_grad_norm_(self.network.trainable(), limit))
        for group in self._optimizer.param_groups:
            group["lr"] = params["learning_rate"]
            group["betas"] = (params["beta1"], params["beta2"])
            group["eps"] = params["eps"]
            group["weight_decay"] = params["weight_decay"]
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        return norm

    def weights(self) -> Weights:
        """A copy of the adapter's."""
        adapted = self.network.adapted
        return {name: tensor.detach().clone() for name, tensor in adapter_weights(adapted).items()}

    def save(self) -> Saved:
        """Everything that the next step needs."""
        return Saved(self.rank, self.weights(), deepcopy(self._optimizer.state_dict()))

    def load(self, saved: Saved, *, with_optimizer: bool) -> None:
        """The inverse of `save`."""
        load_adapter_weights(self.network.adapted, saved.weights)
        if with_optimizer:
            self._optimizer.load_state_dict(deepcopy(saved.optimizer))

    @torch.no_grad()
    def sample(self, weights: Weights, prompts: Sequence[Prompt]) -> list[SampledCompletion]:
        """One completion per prompt, by an adapter with these weights."""
        own = self.weights()
        load_adapter_weights(self.network.adapted, weights)
        try:
            with merged_adapter(self.network.adapted):
                return self._decode(prompts)
        finally:
            load_adapter_weights(self.network.adapted, own)

    def _decode(self, prompts: Sequence[Prompt]) -> list[SampledCompletion]:
        network = self.network
        for prompt in prompts:
            if prompt.stop is not None and set(prompt.stop) != network.end_tokens:
                message = f"stop {prompt.stop} are not the end tokens {sorted(network.end_tokens)}"
                raise RefusedError(message)
        sequences = [self._tokens(prompt.chunks) for prompt in prompts]
        segments = [Segment(one.tokens, self._encoder.encode(one.screenshots)) for one in sequences]
        capacity = max(len(one.tokens) for one in sequences) + max(
            prompt.parameters.max_tokens for prompt in prompts
        )
        caches = EpisodeCaches(network.cache_shape, network.device, network.base.dtype)
        cache = caches.load([None] * len(prompts), capacity)
        prefilled = prefill(network, cache, segments, [0] * len(prompts))
        parameters = [prompt.parameters for prompt in prompts]
        return decode(network, cache, prefilled, parameters).completions

    def _tokens(self, chunks: Sequence[Chunk]) -> TokenSequence:
        """All tokens, with as many placeholders as each image has."""
        sequence = TokenSequence()
        for chunk in chunks:
            if isinstance(chunk, bytes):
                shot = Screenshot(chunk, *Image.open(io.BytesIO(chunk)).size)
                (features,) = self._encoder.encode([shot])
                assert self.network.image_token is not None
                sequence.tokens += [self.network.image_token] * features.grid.num_tokens
                sequence.screenshots.append(shot)
            else:
                sequence.tokens += chunk
        return sequence

    def _sequence(self, one: Example) -> TokenSequence:
        sequence = self._tokens(one.chunks)
        targets = one.inputs["target_tokens"]
        inputs = sequence.tokens
        if len(targets) != len(inputs):
            message = f"{len(targets)} target_tokens for {len(inputs)} tokens of model_input"
            raise RefusedError(message)
        sequence.tokens = [*inputs, int(targets[-1])]
        sequence.sampled_at = [
            at
            for at in range(1, len(inputs) + 1)
            if sequence.tokens[at] != self.network.image_token
        ]
        if any(sequence.tokens[at] != targets[at - 1] for at in sequence.sampled_at):
            message = "target_tokens are not the tokens of model_input, one later"
            raise RefusedError(message)
        return sequence


def _targets(sequence: TokenSequence) -> NDArray[np.int64]:
    return np.asarray(sequence.sampled_at, np.int64) - 1


def _loss(
    logprobs_N: Tensor, sequence: TokenSequence, one: Example, name: str, config: dict[str, float]
) -> Tensor:
    at = _targets(sequence)
    if name == "cross_entropy":
        return -(logprobs_N * torch.from_numpy(one.inputs["weights"][at])).sum()
    if name not in {"importance_sampling", "ppo", "cispo"}:
        message = f"unknown loss_fn {name}"
        raise RefusedError(message)
    defaults = {"ppo": (0.8, 1.2), "cispo": (0.0, 4.0)}.get(name, (0.8, 1.2))
    low = config.get("clip_low_threshold", defaults[0])
    high = config.get("clip_high_threshold", defaults[1])
    old_N = torch.from_numpy(one.inputs["logprobs"][at])
    advantages_N = torch.from_numpy(one.inputs["advantages"][at])
    mask_N = torch.ones_like(old_N, dtype=torch.bool)
    clip = Clip(1 - low, high - 1)
    loss_fn = LOSSES[name]  # type: ignore[index]  # checked above
    return loss_fn(logprobs_N[None], old_N[None], advantages_N[None], mask_N[None], clip).sum()

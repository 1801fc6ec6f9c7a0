"""The forward and backward passes of an update, over micro-batches of its sequences.

Axes: B sequences, T completion tokens of the longest, N completion tokens of all.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor, nn

from producer.algorithms.aggregation import AGGREGATIONS, BatchSize
from producer.algorithms.kl import KL_ESTIMATORS
from producer.algorithms.losses import LOSSES, clip_of
from producer.algorithms.names import PER_SEQUENCE
from producer.algorithms.settings import UpdateSettings
from producer.policy.compute_settings import Switch
from producer.policy.torch_policy.checkpointing import checkpointed_layers, is_checkpointed
from producer.policy.torch_policy.cpu_parallel import num_workers, parallel_map
from producer.policy.torch_policy.learned_advantage import LearnedAdvantage
from producer.policy.torch_policy.logprobs import (
    CompletionStates,
    completion_states,
    micro_batches,
    state_entropies,
    state_logprobs,
)
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.screen_encoder import ScreenEncoder
from producer.policy.torch_policy.seeded_dropout import dropout_drawn_from
from producer.policy.torch_policy.training_sequences import (
    TrainingSequence,
    pad,
    unflatten,
)
from producer.seeds import derived_seed

Lend = Callable[[], None]
"""Lets another caller use the network, and returns when that is over."""
Batch = TypeVar("Batch")


def part_by_part() -> None:
    """A `Lend` that lends nothing: passes run in parts all the same."""


@dataclass(frozen=True, slots=True)
class BackwardPass:
    """Result of one micro-batch."""

    gradients: tuple[Tensor | None, ...]
    """Per parameter of `UpdatePasses.parameters`; None where the loss does not depend on one (an
    adapter on the frozen tower)."""
    loss: float
    """Without the joint loss of a learned advantage."""
    token_loss: float
    """Sum over tokens, whatever the aggregation."""
    logprobs_2N: Tensor
    """Current and sampled log-prob of every completion token."""
    joint_sums: tuple[float, ...]
    """Of the learned advantage's joint loss; empty: there is none."""


@dataclass(frozen=True, slots=True)
class UpdatePasses:
    """What every micro-batch of an update shares."""

    network: Network
    encoder: ScreenEncoder
    settings: UpdateSettings
    learned: LearnedAdvantage | None
    """None: the trajectories have their advantages."""
    parameters: Sequence[nn.Parameter]
    """The active adapter's, then the learned advantage's. Found once: a search takes as long as a
    small network's layer, as does that of `max_workers`."""
    max_workers: int | None
    """The network's."""

    def measure(
        self, sequences: Sequence[TrainingSequence], lend: Lend | None = None
    ) -> list[Tensor]:
        """Current and sampled log-probs [2, N] of each micro-batch; no gradients."""
        return [item for part in self.measure_in_parts(sequences, lend) for item in part]

    def measure_in_parts(
        self, sequences: Sequence[TrainingSequence], lend: Lend | None
    ) -> Iterator[list[Tensor]]:
        """As `measure`; between two parts nothing is computed."""
        batches = _micro_batches(sequences)
        for part, measured in self._without_gradients(self._logprobs, batches, lend):
            yield [
                torch.stack([logprobs_N, torch.cat([item.sampled_logprobs_N for item in own])])
                for own, logprobs_N in zip(part, measured, strict=True)
            ]

    def logprobs(self, sequences: Sequence[TrainingSequence]) -> list[Tensor]:
        """[N] of each sequence; no gradients."""
        return self._per_sequence(self._logprobs, sequences, None)

    def base_logprobs(self, sequences: Sequence[TrainingSequence]) -> list[Tensor]:
        """[N] of each sequence under the network without its adapter; no gradients."""
        with self.network.adapted.disable_adapter():
            return self.logprobs(sequences)

    def of_states(
        self,
        compute: Callable[[CompletionStates], Tensor],
        sequences: Sequence[TrainingSequence],
        lend: Lend | None,
    ) -> list[Tensor]:
        """[N] of each sequence, computed from its hidden states; no gradients."""
        return self._per_sequence(lambda own: compute(self._states(own)), sequences, lend)

    def backward(
        self,
        sequences: Sequence[TrainingSequence],
        size: BatchSize,
        gradient_checkpointing: Switch,
        lend: Lend | None,
        *,
        dropout_seed: int,
    ) -> Iterator[BackwardPass]:
        """Each micro-batch's loss and gradients; `size` is of all sequences.

        `dropout_seed`: of the adapter's dropout, if it has one.
        """
        network, backward = self.network, partial(self._numbered, size, dropout_seed)
        for part, enabled in self._checkpointed(sequences, gradient_checkpointing, lend):
            with checkpointed_layers(network.language_model, enabled=enabled):
                yield from parallel_map(backward, part, network.device, self.max_workers)

    def backward_in_parts(
        self,
        sequences: Sequence[TrainingSequence],
        size: BatchSize,
        gradient_checkpointing: Switch,
        *,
        dropout_seed: int,
    ) -> Iterator[list[BackwardPass]]:
        """As `backward`; between two parts the network is whole and nothing is computed."""
        network, backward = self.network, partial(self._numbered, size, dropout_seed)
        for part, enabled in self._checkpointed(sequences, gradient_checkpointing, part_by_part):
            with checkpointed_layers(network.language_model, enabled=enabled):
                done = list(parallel_map(backward, part, network.device, self.max_workers))
            yield done

    def _checkpointed(
        self,
        sequences: Sequence[TrainingSequence],
        gradient_checkpointing: Switch,
        lend: Lend | None,
    ) -> Iterator[tuple[list[tuple[int, list[TrainingSequence]]], bool]]:
        """Parts of the numbered micro-batches, and whether layers are checkpointed."""
        batches = _micro_batches(sequences)
        padded = [_num_padded(batch) for batch in batches]
        enabled = is_checkpointed(gradient_checkpointing, self.network, padded)
        for part in _parts(self.network, self.max_workers, list(enumerate(batches)), lend):
            yield part, enabled

    def _numbered(
        self, size: BatchSize, dropout_seed: int, numbered: tuple[int, list[TrainingSequence]]
    ) -> BackwardPass:
        number, sequences = numbered
        with dropout_drawn_from(derived_seed(dropout_seed, number)):
            return self._backward(sequences, size)

    def _states(self, sequences: Sequence[TrainingSequence]) -> CompletionStates:
        return completion_states(
            self.network, self.encoder, [sequence.tokens for sequence in sequences]
        )

    def _logprobs(self, sequences: Sequence[TrainingSequence]) -> Tensor:
        return state_logprobs(self.network, self._states(sequences), self.settings.temperature)

    def _backward(self, sequences: Sequence[TrainingSequence], size: BatchSize) -> BackwardPass:
        states, settings = self._states(sequences), self.settings
        logprobs_N = state_logprobs(self.network, states, settings.temperature)
        is_per_sequence = not PER_SEQUENCE.isdisjoint({settings.loss_fn, settings.loss_aggregation})
        batch = pad(sequences, is_per_sequence=is_per_sequence)
        logprobs_BT, mask_BT = unflatten([logprobs_N], batch.mask_BT), batch.mask_BT
        aggregate = AGGREGATIONS[settings.loss_aggregation]
        loss_BT = LOSSES[settings.loss_fn](
            logprobs_BT,
            batch.sampled_logprobs_BT,
            batch.advantages_BT,
            mask_BT,
            clip_of(settings),
        )
        loss = aggregate(loss_BT, mask_BT, size)
        if settings.kl_in == "loss" and batch.base_logprobs_BT is not None:
            kl_BT = KL_ESTIMATORS[settings.kl_estimator](logprobs_BT, batch.base_logprobs_BT)
            loss = loss + settings.kl_penalty_coef * aggregate(kl_BT, mask_BT, size)
        if settings.entropy_coef:
            entropies_N = state_entropies(self.network, states, settings.temperature)
            entropies_BT = unflatten([entropies_N], mask_BT)
            loss = loss - settings.entropy_coef * aggregate(entropies_BT, mask_BT, size)
        joint = None if self.learned is None else self.learned.joint_loss(states, batch)
        whole = loss if joint is None else loss + aggregate(joint.loss_BT, mask_BT, size)
        gradients = torch.autograd.grad(whole, self.parameters, allow_unused=True)
        sampled_N = torch.cat([sequence.sampled_logprobs_N for sequence in sequences])
        return BackwardPass(
            gradients=gradients,
            loss=float(loss.detach()),
            token_loss=float(loss_BT.detach()[mask_BT].sum()),
            logprobs_2N=torch.stack([logprobs_N.detach(), sampled_N]),
            joint_sums=() if joint is None else joint.sums,
        )

    def _per_sequence(
        self,
        compute: Callable[[Sequence[TrainingSequence]], Tensor],
        sequences: Sequence[TrainingSequence],
        lend: Lend | None,
    ) -> list[Tensor]:
        """A number per completion token, [N] of each sequence, in the order of `sequences`."""
        rows = list(micro_batches([sequence.tokens for sequence in sequences]))
        batches = [[sequences[row] for row in own] for own in rows]
        found: list[Tensor] = [torch.zeros(0)] * len(sequences)
        parts = self._without_gradients(compute, batches, lend)
        computed = [numbers_N for _, part in parts for numbers_N in part]
        for own, numbers_N in zip(rows, computed, strict=True):
            lengths = [len(sequences[row].sampled_logprobs_N) for row in own]
            for row, part_N in zip(own, torch.split(numbers_N, lengths), strict=True):
                found[row] = part_N
        return found

    def _without_gradients(
        self,
        compute: Callable[[Sequence[TrainingSequence]], Tensor],
        batches: list[list[TrainingSequence]],
        lend: Lend | None,
    ) -> Iterator[tuple[list[list[TrainingSequence]], list[Tensor]]]:
        """The micro-batches of each part and what is computed of them."""
        network = self.network
        for part in _parts(network, self.max_workers, batches, lend):
            with torch.no_grad():
                computed = list(parallel_map(compute, part, network.device, self.max_workers))
            yield part, computed


def _parts(
    network: Network, max_workers: int | None, batches: list[Batch], lend: Lend | None
) -> Iterator[list[Batch]]:
    """The batches, all at once or, with `lend`, as many at a time as run at a time.

    Nothing is computed when `lend` is called, before each part.
    """
    if lend is None:
        yield batches
        return
    num_lanes = num_workers(network.device)
    size = min(num_lanes, max_workers or num_lanes)
    for start in range(0, len(batches), size):
        lend()
        yield batches[start : start + size]


def _micro_batches(sequences: Sequence[TrainingSequence]) -> list[list[TrainingSequence]]:
    return [
        [sequences[row] for row in rows]
        for rows in micro_batches([sequence.tokens for sequence in sequences])
    ]


def _num_padded(sequences: Sequence[TrainingSequence]) -> int:
    return len(sequences) * max(len(sequence.tokens.tokens) for sequence in sequences)

"""The forward and backward passes of an update, over micro-batches of its sequences.

Axes: B sequences, T completion tokens of the longest, N completion tokens of all.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from producer.algorithms.clipping import num_clipped
from producer.algorithms.losses import (
    AGGREGATIONS,
    KL_ESTIMATORS,
    LOSSES,
    BatchSize,
    truncated_weights,
)
from producer.algorithms.names import PER_SEQUENCE
from producer.algorithms.ratio_bounds import clip_of
from producer.algorithms.settings import UpdateSettings
from producer.policy.compute_settings import Switch
from producer.policy.torch_policy.cpu_parallel import num_workers, parallel_map
from producer.policy.torch_policy.device_memory import (
    PassLimit,
    checkpointed_layers,
    is_checkpointed,
)
from producer.policy.torch_policy.logprobs import (
    CompletionStates,
    completion_states,
    micro_batches,
    state_entropies,
    state_logprobs,
)
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.prefix_sharing import num_padded_tokens
from producer.policy.torch_policy.screen_encoder import ScreenEncoder
from producer.policy.torch_policy.seeded_dropout import dropout_drawn_from
from producer.policy.torch_policy.training_sequences import (
    MicroBatch,
    PaddedBatch,
    TrainingSequence,
    pad,
    token_rows,
    unflatten,
)
from producer.seeds import derived_seed

Lend = Callable[[], None]
"""Lets another caller use the network, and returns when it has finished."""
Batch = TypeVar("Batch")


class JointLoss(NamedTuple):
    """A loss of one micro-batch that is added to the policy's."""

    loss_BT: Tensor
    sums: tuple[float, ...]
    """Measurements that are summed over a step."""


ComputeJointLoss = Callable[[CompletionStates, PaddedBatch], JointLoss | None]
"""Returns None to add nothing. Called from several threads."""


@dataclass(frozen=True, slots=True)
class BackwardPass:
    """Result of one micro-batch."""

    gradients: tuple[Tensor | None, ...]
    """One per entry of `UpdatePasses.parameters`; None if the loss does not depend on it (an
    adapter on the frozen tower)."""
    loss: float
    """Loss without a learned advantage's joint loss."""
    token_loss: float
    """Loss summed over tokens, whatever the aggregation."""
    logprobs_2N: Tensor
    """Current and sampled log-prob of every completion token."""
    joint_sums: tuple[float, ...]
    """Sums of the learned advantage's joint loss; empty if there is none."""
    num_clipped: int
    """Number of tokens whose probability ratio the loss clips."""
    largest_log_ratio: float
    """Maximum over tokens of the log-ratio of current to sampled probability."""


@dataclass(frozen=True, slots=True)
class UpdatePasses:
    """What all micro-batches of an update share."""

    network: Network
    encoder: ScreenEncoder
    settings: UpdateSettings
    joint_loss: ComputeJointLoss | None
    """Joint loss of a learned advantage; None if the trajectories have their advantages."""
    parameters: Sequence[nn.Parameter]
    """The active adapter's parameters, then the learned advantage's. Computed once, because a
    search takes as long as a layer of a small network; the same goes for `max_workers`."""
    max_workers: int | None
    """See `Network.max_workers`."""
    gradient_checkpointing: Switch = "auto"
    limit: PassLimit = field(default_factory=PassLimit)
    """Divides micro-batches that do not fit into the device's memory."""

    def measure(
        self, sequences: Sequence[TrainingSequence], lend: Lend | None = None
    ) -> list[Tensor]:
        """Current and sampled log-probs [2, N] of each micro-batch; no gradients."""
        batches = _micro_batches(self.network, sequences)
        measured = self._without_gradients(self._logprobs, batches, lend)
        return [
            torch.stack([logprobs_N, _sampled_logprobs(micro_batch)])
            for micro_batch, logprobs_N in zip(batches, measured, strict=True)
        ]

    def logprobs(
        self, sequences: Sequence[TrainingSequence], lend: Lend | None = None
    ) -> list[Tensor]:
        """[N] per sequence: log-probs; no gradients."""
        return self._per_sequence(self._logprobs, sequences, lend)

    def base_logprobs(self, sequences: Sequence[TrainingSequence]) -> list[Tensor]:
        """[N] per sequence: log-probs under the network without its adapter; no gradients."""
        with self.network.adapted.disable_adapter():
            return self.logprobs(sequences)

    def of_states(
        self,
        compute: Callable[[CompletionStates], Tensor],
        sequences: Sequence[TrainingSequence],
        lend: Lend | None,
    ) -> list[Tensor]:
        """[N] per sequence, computed from its hidden states; no gradients."""
        return self._per_sequence(
            lambda micro_batch: compute(self._states(micro_batch)), sequences, lend
        )

    def backward(
        self,
        sequences: Sequence[TrainingSequence],
        size: BatchSize,
        dropout_seed: int,
        lend: Lend | None = None,
    ) -> Iterator[BackwardPass]:
        """Yield each micro-batch's loss and gradients; exhaust it to restore the network.

        `size`: size of the step's sequences. `dropout_seed`: seed of the adapter's dropout, if any.
        """
        network, compute = self.network, partial(self._numbered, size, dropout_seed)
        batches = _micro_batches(network, sequences)
        padded = [num_padded_tokens(network, token_rows(batch)) for batch in batches]
        enabled = is_checkpointed(self.gradient_checkpointing, network, padded)
        for part in _parts(network, self.max_workers, list(enumerate(batches)), lend):
            with checkpointed_layers(network.language_model, enabled=enabled):
                done = parallel_map(compute, part, network.device, self.max_workers)
                yield from chain.from_iterable(done)

    def _numbered(
        self, size: BatchSize, dropout_seed: int, numbered: tuple[int, MicroBatch]
    ) -> list[BackwardPass]:
        number, micro_batch = numbered
        with dropout_drawn_from(derived_seed(dropout_seed, number)):
            return self.limit.divided(self.network, partial(self._backward, size), micro_batch)

    def _states(self, micro_batch: MicroBatch) -> CompletionStates:
        return completion_states(self.network, self.encoder, token_rows(micro_batch))

    def _logprobs(self, micro_batch: MicroBatch) -> Tensor:
        return state_logprobs(self.network, self._states(micro_batch), self.settings.temperature)

    def _backward(self, size: BatchSize, micro_batch: MicroBatch) -> BackwardPass:
        sequences = list(chain.from_iterable(micro_batch))
        states, settings = self._states(micro_batch), self.settings
        logprobs_N = state_logprobs(self.network, states, settings.temperature)
        is_per_sequence = not PER_SEQUENCE.isdisjoint({settings.loss_fn, settings.loss_aggregation})
        batch = pad(sequences, is_per_sequence=is_per_sequence)
        logprobs_BT, mask_BT = unflatten([logprobs_N], batch.mask_BT), batch.mask_BT
        aggregate = AGGREGATIONS[settings.loss_aggregation]
        sampled_BT, learner_BT = batch.sampled_logprobs_BT, batch.learner_logprobs_BT
        old_BT = sampled_BT if learner_BT is None else learner_BT
        loss_BT = LOSSES[settings.loss_fn](
            logprobs_BT, old_BT, batch.advantages_BT, mask_BT, clip_of(settings)
        )
        if learner_BT is not None and settings.importance_cap is not None:
            loss_BT = loss_BT * truncated_weights(learner_BT, sampled_BT, settings.importance_cap)
        loss = aggregate(loss_BT, mask_BT, size)
        if settings.kl_in == "loss" and batch.base_logprobs_BT is not None:
            kl_BT = KL_ESTIMATORS[settings.kl_estimator](logprobs_BT, batch.base_logprobs_BT)
            loss = loss + settings.kl_penalty_coef * aggregate(kl_BT, mask_BT, size)
        if settings.entropy_coef:
            entropies_N = state_entropies(self.network, states, settings.temperature)
            entropies_BT = unflatten([entropies_N], mask_BT)
            loss = loss - settings.entropy_coef * aggregate(entropies_BT, mask_BT, size)
        joint = None if self.joint_loss is None else self.joint_loss(states, batch)
        whole = loss if joint is None else loss + aggregate(joint.loss_BT, mask_BT, size)
        gradients = torch.autograd.grad(whole, self.parameters, allow_unused=True)
        sampled_N = _sampled_logprobs(micro_batch)
        log_ratio_BT = logprobs_BT.detach() - old_BT
        return BackwardPass(
            gradients=gradients,
            loss=float(loss.detach()),
            token_loss=float(loss_BT.detach()[mask_BT].sum()),
            logprobs_2N=torch.stack([logprobs_N.detach(), sampled_N]),
            joint_sums=() if joint is None else joint.sums,
            num_clipped=num_clipped(
                settings.loss_fn, log_ratio_BT, batch.advantages_BT, mask_BT, clip_of(settings)
            ),
            largest_log_ratio=float((logprobs_N.detach() - sampled_N).max()),
        )

    def _per_sequence(
        self,
        compute: Callable[[MicroBatch], Tensor],
        sequences: Sequence[TrainingSequence],
        lend: Lend | None,
    ) -> list[Tensor]:
        """A number per completion token, [N] per sequence, in the order of `sequences`."""
        indices = micro_batches(self.network, [sequence.tokens for sequence in sequences])
        batches = _gather(sequences, indices)
        found: list[Tensor] = [torch.zeros(0)] * len(sequences)
        computed = self._without_gradients(compute, batches, lend)
        for batch, numbers_N in zip(indices, computed, strict=True):
            own = list(chain.from_iterable(batch))
            lengths = [len(sequences[index].sampled_logprobs_N) for index in own]
            for index, part_N in zip(own, torch.split(numbers_N, lengths), strict=True):
                found[index] = part_N
        return found

    def _without_gradients(
        self,
        compute: Callable[[MicroBatch], Tensor],
        batches: list[MicroBatch],
        lend: Lend | None,
    ) -> list[Tensor]:
        """Apply `compute` to each micro-batch without gradients."""
        network, computed = self.network, list[Tensor]()

        def fitting(micro_batch: MicroBatch) -> Tensor:
            return torch.cat(self.limit.divided(network, compute, micro_batch))

        for part in _parts(network, self.max_workers, batches, lend):
            with torch.no_grad():
                computed += parallel_map(fitting, part, network.device, self.max_workers)
        return computed


def _parts(
    network: Network, max_workers: int | None, batches: list[Batch], lend: Lend | None
) -> Iterator[list[Batch]]:
    """The batches, all at once or, with `lend`, as many at a time as run concurrently.

    `lend` is called before each part, while nothing is being computed.
    """
    if lend is None:
        yield batches
        return
    num_lanes = num_workers(network.device)
    size = min(num_lanes, max_workers or num_lanes)
    for start in range(0, len(batches), size):
        lend()
        yield batches[start : start + size]


def _micro_batches(network: Network, sequences: Sequence[TrainingSequence]) -> list[MicroBatch]:
    return _gather(sequences, micro_batches(network, [sequence.tokens for sequence in sequences]))


def _gather(
    sequences: Sequence[TrainingSequence], batches: Sequence[Sequence[Sequence[int]]]
) -> list[MicroBatch]:
    """The sequences at these indices."""
    return [[[sequences[index] for index in row] for row in batch] for batch in batches]


def _sampled_logprobs(micro_batch: MicroBatch) -> Tensor:
    """[N]: sampled log-probs of all its sequences."""
    return torch.cat([sequence.sampled_logprobs_N for row in micro_batch for sequence in row])

"""One policy-gradient update of the adapter: substeps, loss, optimiser.

Axes: B sequences, T completion tokens of the longest, N completion tokens of all.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest

import torch
from torch import Tensor

from producer.algorithms.aggregation import AGGREGATIONS, BatchSize
from producer.algorithms.kl import KL_ESTIMATORS, kl_penalized, kl_sample_train
from producer.algorithms.losses import LOSSES, Clip
from producer.algorithms.names import PER_SEQUENCE
from producer.policy.compute_settings import Switch
from producer.policy.learner import Trajectory, UpdateResult, UpdateSettings
from producer.policy.torch_policy.checkpointing import checkpointed_layers, is_checkpointed
from producer.policy.torch_policy.cpu_parallel import (
    add_gradients,
    num_workers,
    parallel_map,
    split_evenly,
)
from producer.policy.torch_policy.logprobs import completion_logprobs, micro_batches
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.screen_encoder import ScreenEncoder
from producer.policy.torch_policy.training_sequences import (
    TrainingSequence,
    pad,
    training_sequences,
    unflatten,
)

Lend = Callable[[], None]
"""Lets somebody else use the network, and returns when that is over."""


@dataclass(frozen=True, slots=True)
class _BackwardPass:
    """Result of one micro-batch."""

    gradients: tuple[Tensor | None, ...]
    """Per trainable parameter; None where the loss does not depend on one (an adapter on the frozen
    tower)."""
    loss: float
    token_loss: float
    """Sum over tokens, whatever the aggregation."""
    logprobs_2N: Tensor
    """Current and sampled log-prob of every completion token."""


@dataclass(frozen=True, slots=True)
class _UpdateContext:
    """What every micro-batch of an update shares."""

    network: Network
    encoder: ScreenEncoder
    settings: UpdateSettings

    def logprobs(self, sequences: Sequence[TrainingSequence]) -> Tensor:
        """[N] under the current network."""
        return completion_logprobs(
            self.network,
            self.encoder,
            [one.tokens for one in sequences],
            self.settings.temperature,
        )

    def backward(self, sequences: Sequence[TrainingSequence], size: BatchSize) -> _BackwardPass:
        """Loss of a micro-batch and its gradients."""
        logprobs_N, settings = self.logprobs(sequences), self.settings
        is_per_sequence = not PER_SEQUENCE.isdisjoint({settings.loss, settings.aggregation})
        batch = pad(sequences, is_per_sequence=is_per_sequence)
        logprobs_BT, mask_BT = unflatten([logprobs_N], batch.mask_BT), batch.mask_BT
        aggregate = AGGREGATIONS[settings.aggregation]
        loss_BT = LOSSES[settings.loss](
            logprobs_BT,
            batch.sampled_logprobs_BT,
            batch.advantages_BT,
            mask_BT,
            Clip(settings.clip_low, settings.clip_high, settings.dual_clip),
        )
        loss = aggregate(loss_BT, mask_BT, size)
        if settings.kl_in == "loss" and batch.base_logprobs_BT is not None:
            kl_BT = KL_ESTIMATORS[settings.kl_estimator](logprobs_BT, batch.base_logprobs_BT)
            loss = loss + settings.kl_penalty_coef * aggregate(kl_BT, mask_BT, size)
        gradients = torch.autograd.grad(loss, self.network.trainable(), allow_unused=True)
        sampled_N = torch.cat([one.sampled_logprobs_N for one in sequences])
        return _BackwardPass(
            gradients=gradients,
            loss=float(loss.detach()),
            token_loss=float(loss_BT.detach()[mask_BT].sum()),
            logprobs_2N=torch.stack([logprobs_N.detach(), sampled_N]),
        )

    def measure(
        self, sequences: Sequence[TrainingSequence], lend: Lend | None = None
    ) -> list[Tensor]:
        """Current and sampled log-probs [2, N] of each micro-batch; no gradients."""
        batches = _micro_batches(sequences)
        network, measured = self.network, list[Tensor]()
        for part in _parts(network, batches, lend):
            with torch.no_grad():
                measured += parallel_map(self.logprobs, part, network.device, network.max_workers)
        return [
            torch.stack([logprobs_N, torch.cat([one.sampled_logprobs_N for one in own])])
            for own, logprobs_N in zip(batches, measured, strict=True)
        ]


def _parts(
    network: Network, batches: list[list[TrainingSequence]], lend: Lend | None
) -> Iterator[list[list[TrainingSequence]]]:
    """The batches, all at once or, with `lend`, as many at a time as run at a time.

    Nothing is computed when `lend` is called, before each part.
    """
    if lend is None:
        yield batches
        return
    num_lanes = num_workers(network.device)
    size = min(num_lanes, network.max_workers or num_lanes)
    for start in range(0, len(batches), size):
        lend()
        yield batches[start : start + size]


def make_optimizer(network: Network) -> torch.optim.AdamW:
    """AdamW on the adapter with tinker's betas and no weight decay; each step sets its rate."""
    return torch.optim.AdamW(
        network.trainable(), lr=0.0, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.0
    )


def policy_gradient(
    network: Network,
    encoder: ScreenEncoder,
    optimizer: torch.optim.AdamW,
    trajectories: Sequence[Trajectory],
    settings: UpdateSettings,
    gradient_checkpointing: Switch = "auto",
    *,
    lend: Lend | None = None,
) -> UpdateResult:
    """Update the adapter on the trajectories that are trained on, and measure all of them.

    Without completion tokens nothing changes and the result's means are NaN. `lend` is called now
    and then until the first optimiser step: the network is whole and may be sampled from.
    """
    began = time.monotonic()
    context = _UpdateContext(network, encoder, settings)
    sequences = training_sequences(trajectories, network.device)
    if settings.kl_penalty_coef != 0 and sequences:
        sequences = _with_base_logprobs(context, sequences)
    trained = _with_kl_penalty(settings, [one for one in sequences if one.is_trained])
    # The order is a seeded shuffle, so that a substep does not see one task's groups alone.
    shuffled = random.Random(settings.seed).sample(trained, len(trained))  # noqa: S311  # order, not secrets
    substeps = split_evenly(shuffled, settings.num_substeps)
    others = split_evenly([one for one in sequences if not one.is_trained], max(1, len(substeps)))
    losses: list[float] = []
    token_loss = 0.0
    gradient_norms: list[float] = []
    logprobs: list[Tensor] = []
    for substep, measured in zip_longest(substeps, others, fillvalue=()):
        may_lend = None if losses else lend
        logprobs += context.measure(measured, may_lend)
        if not substep:
            continue
        size = BatchSize(sum(len(one.advantages_N) for one in substep), len(substep))
        optimizer.zero_grad(set_to_none=True)
        batches = _micro_batches(substep)
        enabled = is_checkpointed(
            gradient_checkpointing, network, [_num_padded(one) for one in batches]
        )
        loss = 0.0
        backward = partial(context.backward, size=size)
        for part in _parts(network, batches, may_lend):
            with checkpointed_layers(network.language_model, enabled=enabled):
                for done in parallel_map(backward, part, network.device, network.max_workers):
                    add_gradients(network.trainable(), done.gradients)
                    loss += done.loss
                    token_loss += done.token_loss
                    logprobs.append(done.logprobs_2N)
        losses.append(loss)
        gradient_norms.append(_optimizer_step(network, optimizer, settings))
    trained_N, sampled_N = torch.cat(logprobs, dim=1) if logprobs else torch.zeros((2, 0))
    kl = kl_sample_train(sampled_N, trained_N)
    num_tokens = sum(len(one.advantages_N) for one in trained)
    post_N, before_N = _after_update(context, sequences)
    post = kl_sample_train(before_N, post_N)
    return UpdateResult(
        loss=sum(losses) / (1 if settings.aggregation == "sum" else max(1, len(losses))),
        loss_per_token=token_loss / max(1, num_tokens),
        kl_sample_train_v1=kl.v1,
        kl_sample_train_v2=kl.v2,
        kl_policy_base=_kl_policy_base(sequences),
        kl_pre_post_v1=post.v1 if settings.compute_post_kl and len(post_N) else None,
        kl_pre_post_v2=post.v2 if settings.compute_post_kl and len(post_N) else None,
        entropy=float(-sampled_N.mean()),
        gradient_norm=sum(gradient_norms) / max(1, len(gradient_norms)),
        num_tokens=num_tokens,
        num_measured_tokens=sampled_N.numel(),
        seconds=time.monotonic() - began,
    )


def _with_base_logprobs(
    context: _UpdateContext, sequences: list[TrainingSequence]
) -> list[TrainingSequence]:
    network = context.network
    base: list[Tensor] = [torch.zeros(0)] * len(sequences)
    with torch.no_grad(), network.adapted.disable_adapter():
        batches = micro_batches([one.tokens for one in sequences])
        base_logprobs = parallel_map(
            lambda rows: context.logprobs([sequences[row] for row in rows]),
            batches,
            network.device,
            network.max_workers,
        )
        for rows, logprobs_N in zip(batches, base_logprobs, strict=True):
            lengths = [len(sequences[row].sampled_logprobs_N) for row in rows]
            for row, own_N in zip(rows, torch.split(logprobs_N, lengths), strict=True):
                base[row] = own_N
    return [replace(one, base_logprobs_N=own_N) for one, own_N in zip(sequences, base, strict=True)]


def _with_kl_penalty(
    settings: UpdateSettings, sequences: list[TrainingSequence]
) -> list[TrainingSequence]:
    """The sequences with advantages penalised by their KL divergence from the base policy."""
    base = [one.base_logprobs_N for one in sequences if one.base_logprobs_N is not None]
    if settings.kl_in == "loss" or not base:
        return sequences
    sampled_N = torch.cat([one.sampled_logprobs_N for one in sequences])
    penalized_N = kl_penalized(
        torch.cat([one.advantages_N for one in sequences]),
        KL_ESTIMATORS[settings.kl_estimator](sampled_N, torch.cat(base)),
        settings.kl_penalty_coef,
    )
    lengths = [len(one.sampled_logprobs_N) for one in sequences]
    return [
        replace(one, advantages_N=own_N)
        for one, own_N in zip(sequences, torch.split(penalized_N, lengths), strict=True)
    ]


def _kl_policy_base(sequences: Sequence[TrainingSequence]) -> float | None:
    """Mean of log p_sampled - log p_base; None: not measured."""
    differences = [
        one.sampled_logprobs_N - one.base_logprobs_N
        for one in sequences
        if one.base_logprobs_N is not None
    ]
    return float(torch.cat(differences).mean()) if differences else None


def _after_update(context: _UpdateContext, sequences: Sequence[TrainingSequence]) -> Tensor:
    """Log-probs [2, N] of every token under the updated network, and as sampled."""
    if not context.settings.compute_post_kl or not sequences:
        return torch.zeros((2, 0))
    return torch.cat(context.measure(sequences), dim=1)


def _micro_batches(sequences: Sequence[TrainingSequence]) -> list[list[TrainingSequence]]:
    return [
        [sequences[row] for row in rows]
        for rows in micro_batches([one.tokens for one in sequences])
    ]


def _num_padded(sequences: Sequence[TrainingSequence]) -> int:
    return len(sequences) * max(len(one.tokens.tokens) for one in sequences)


def _optimizer_step(
    network: Network, optimizer: torch.optim.AdamW, settings: UpdateSettings
) -> float:
    """One optimiser step; returns the gradient's norm before clipping."""
    max_norm = settings.max_gradient_norm or float("inf")
    norm = torch.nn.utils.clip_grad_norm_(network.trainable(), max_norm)
    for group in optimizer.param_groups:
        group["lr"] = settings.learning_rate
    optimizer.step()
    return float(norm)

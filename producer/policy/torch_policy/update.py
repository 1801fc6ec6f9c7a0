"""One policy-gradient update of the adapter: substeps, loss, optimiser.

Axis: N completion tokens.
"""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from producer.algorithms.kl import kl_penalized, kl_sample_train
from producer.algorithms.losses import policy_loss
from producer.policy.compute_settings import Switch
from producer.policy.learner import Trajectory, UpdateResult, UpdateSettings
from producer.policy.torch_policy.checkpointing import checkpointed_layers, is_checkpointed
from producer.policy.torch_policy.cpu_parallel import add_gradients, parallel_map, split_evenly
from producer.policy.torch_policy.logprobs import completion_logprobs, micro_batches
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.screen_encoder import ScreenEncoder
from producer.policy.torch_policy.sequences import TokenSequence, join_turns


@dataclass(frozen=True, slots=True)
class _TrainingSequence:
    """A sequence with the advantage and the sampled log-prob of each completion token."""

    tokens: TokenSequence
    advantages_N: Tensor
    sampled_logprobs_N: Tensor


@dataclass(frozen=True, slots=True)
class _BackwardPass:
    """Result of one micro-batch."""

    gradients: tuple[Tensor | None, ...]
    """Per trainable parameter; None where the loss does not depend on one (an adapter on the frozen
    tower)."""
    loss: float
    logprobs_2N: Tensor
    """Current and sampled log-prob of every completion token."""


@dataclass(frozen=True, slots=True)
class _UpdateContext:
    """What every micro-batch of an update shares."""

    network: Network
    encoder: ScreenEncoder
    settings: UpdateSettings

    def logprobs(self, sequences: Sequence[_TrainingSequence]) -> Tensor:
        """[N] under the current network."""
        return completion_logprobs(
            self.network,
            self.encoder,
            [one.tokens for one in sequences],
            self.settings.temperature,
        )

    def backward(self, sequences: Sequence[_TrainingSequence]) -> _BackwardPass:
        """Loss of a micro-batch and its gradients."""
        logprobs_N = self.logprobs(sequences)
        sampled_N = torch.cat([one.sampled_logprobs_N for one in sequences])
        advantages_N = torch.cat([one.advantages_N for one in sequences])
        loss = policy_loss(self.settings.loss, logprobs_N, sampled_N, advantages_N)
        gradients = torch.autograd.grad(loss, self.network.trainable(), allow_unused=True)
        return _BackwardPass(
            gradients=gradients,
            loss=float(loss.detach()),
            logprobs_2N=torch.stack([logprobs_N.detach(), sampled_N]),
        )


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
) -> UpdateResult:
    """Update the adapter.

    Without completion tokens nothing changes and the result's means are NaN.
    """
    began = time.monotonic()
    context = _UpdateContext(network, encoder, settings)
    sequences = _training_sequences(trajectories, network.device)
    if settings.kl_penalty_coef != 0 and sequences:
        sequences = _with_kl_penalty(context, sequences)
    # The order is a seeded shuffle, so that a substep does not see one task's groups alone.
    shuffled = random.Random(settings.seed).sample(sequences, len(sequences))  # noqa: S311  # order, not secrets
    substeps = split_evenly(shuffled, settings.num_substeps)
    loss = 0.0
    gradient_norms: list[float] = []
    logprobs: list[Tensor] = []
    for substep in substeps:
        optimizer.zero_grad(set_to_none=True)
        batches = _micro_batches(substep)
        enabled = is_checkpointed(
            gradient_checkpointing, network, [_num_padded(one) for one in batches]
        )
        with checkpointed_layers(network.language_model, enabled=enabled):
            for done in parallel_map(
                context.backward, batches, network.device, network.max_workers
            ):
                add_gradients(network.trainable(), done.gradients)
                loss += done.loss
                logprobs.append(done.logprobs_2N)
        gradient_norms.append(_optimizer_step(network, optimizer, settings))
    trained_N, sampled_N = torch.cat(logprobs, dim=1) if logprobs else torch.zeros((2, 0))
    kl = kl_sample_train(sampled_N, trained_N)
    return UpdateResult(
        loss=loss,
        kl_sample_train_v1=kl.v1,
        kl_sample_train_v2=kl.v2,
        entropy=float(-sampled_N.mean()),
        gradient_norm=sum(gradient_norms) / max(1, len(gradient_norms)),
        num_tokens=sampled_N.numel(),
        seconds=time.monotonic() - began,
    )


def _training_sequences(
    trajectories: Sequence[Trajectory], device: torch.device
) -> list[_TrainingSequence]:
    sequences = []
    for trajectory in trajectories:
        for tokens in join_turns((turn.screenshot, turn.tokens) for turn in trajectory.turns):
            if tokens.sampled_at:
                sampled_N = torch.tensor(tokens.sampled_logprobs, device=device)
                advantages_N = torch.full_like(sampled_N, trajectory.advantage)
                sequences.append(_TrainingSequence(tokens, advantages_N, sampled_N))
    return sequences


def _with_kl_penalty(
    context: _UpdateContext, sequences: list[_TrainingSequence]
) -> list[_TrainingSequence]:
    """The sequences with advantages penalised by their KL divergence from the base policy."""
    network = context.network
    base: list[Tensor] = [torch.zeros(0)] * len(sequences)
    with torch.no_grad(), network.adapted.disable_adapter():
        batches = list(micro_batches([one.tokens for one in sequences]))
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
    penalized_N = kl_penalized(
        advantages_N=torch.cat([one.advantages_N for one in sequences]),
        sampled_logprobs_N=torch.cat([one.sampled_logprobs_N for one in sequences]),
        base_logprobs_N=torch.cat(base),
        coef=context.settings.kl_penalty_coef,
    )
    lengths = [len(one.sampled_logprobs_N) for one in sequences]
    return [
        replace(one, advantages_N=own_N)
        for one, own_N in zip(sequences, torch.split(penalized_N, lengths), strict=True)
    ]


def _micro_batches(sequences: Sequence[_TrainingSequence]) -> list[list[_TrainingSequence]]:
    return [
        [sequences[row] for row in rows]
        for rows in micro_batches([one.tokens for one in sequences])
    ]


def _num_padded(sequences: Sequence[_TrainingSequence]) -> int:
    return len(sequences) * max(len(one.tokens.tokens) for one in sequences)


def _optimizer_step(
    network: Network, optimizer: torch.optim.AdamW, settings: UpdateSettings
) -> float:
    """One optimiser step; returns the gradient's norm before clipping."""
    max_norm = settings.max_gradient_norm or float("inf")
    norm = torch.nn.utils.clip_grad_norm_(network.trainable(), max_norm)
    factor = (
        min(1.0, (_num_steps(optimizer) + 1) / settings.warmup_steps)
        if settings.warmup_steps
        else 1.0
    )
    for group in optimizer.param_groups:
        group["lr"] = settings.learning_rate * factor
    optimizer.step()
    return float(norm)


def _num_steps(optimizer: torch.optim.AdamW) -> int:
    states = list(optimizer.state.values())
    return int(states[0]["step"]) if states else 0

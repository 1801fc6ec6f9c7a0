"""One batch of policy gradient on the adapter: substeps, loss, optimiser.

Axis: N completion tokens.
"""

import itertools
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from producer.algorithms.kl import kl_penalised, kl_sample_train
from producer.algorithms.losses import policy_loss
from producer.policy.learner import Trajectory, UpdateResult, UpdateSettings
from producer.policy.torch_policy.cpu_parallel import add_gradients, parallel_map
from producer.policy.torch_policy.logprobs import completion_logprobs, passes
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.screen_encoder import ScreenEncoder
from producer.policy.torch_policy.sequences import TokenSequence, join_turns


@dataclass(frozen=True, slots=True)
class _Weighted:
    """A sequence and the advantage of each of its completion tokens."""

    sequence: TokenSequence
    advantages_N: Tensor
    old_logprobs_N: Tensor


@dataclass(frozen=True, slots=True)
class _Pass:
    """What one forward and backward brought."""

    gradients: tuple[Tensor | None, ...]
    """Of the pass's loss, per trainable parameter; None where it does not depend on one (an adapter
    on the frozen tower)."""
    loss: float
    logprobs_2N: Tensor
    """Of every completion token: as it is now, as it was sampled."""


@dataclass(slots=True)
class _Totals:
    loss: float = 0.0
    gradient_norms: float = 0.0
    num_substeps: int = 0


def make_optimizer(network: Network) -> torch.optim.AdamW:
    """AdamW on the adapter with tinker's betas and no weight decay.

    The learning rate is set at every step.
    """
    return torch.optim.AdamW(
        network.trainable(), lr=0.0, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.0
    )


def policy_gradient(
    network: Network,
    encoder: ScreenEncoder,
    optimizer: torch.optim.AdamW,
    trajectories: Sequence[Trajectory],
    settings: UpdateSettings,
) -> UpdateResult:
    """Update the adapter; see `UpdateResult` for what is measured.

    Without completion tokens nothing changes and the means are NaN.
    """
    began = time.monotonic()
    weighted = _weigh(network, encoder, trajectories, settings)
    totals = _Totals()
    new_logprobs: list[Tensor] = []
    for substep in _split(weighted, settings):
        optimizer.zero_grad(set_to_none=True)
        batches = [
            [substep[row] for row in rows] for rows in passes([item.sequence for item in substep])
        ]
        for done in parallel_map(
            lambda items: _pass(network, encoder, items, settings), batches, network.device
        ):
            add_gradients(network.trainable(), done.gradients)
            totals.loss += done.loss
            new_logprobs.append(done.logprobs_2N)
        totals.gradient_norms += _step(network, optimizer, settings)
        totals.num_substeps += 1
    new_N, old_N = torch.cat(new_logprobs, dim=1) if new_logprobs else torch.zeros((2, 0))
    kl = kl_sample_train(old_N, new_N)
    return UpdateResult(
        loss=totals.loss,
        kl_sample_train_v1=kl.v1,
        kl_sample_train_v2=kl.v2,
        entropy=float(-old_N.mean()),
        gradient_norm=totals.gradient_norms / max(1, totals.num_substeps),
        num_tokens=old_N.numel(),
        seconds=time.monotonic() - began,
    )


def _pass(
    network: Network, encoder: ScreenEncoder, items: Sequence[_Weighted], settings: UpdateSettings
) -> _Pass:
    logprobs_N = completion_logprobs(
        network, encoder, [item.sequence for item in items], settings.temperature
    )
    old_N = torch.cat([item.old_logprobs_N for item in items])
    advantages_N = torch.cat([item.advantages_N for item in items])
    loss = policy_loss(settings.loss, logprobs_N, old_N, advantages_N)
    gradients = torch.autograd.grad(loss, network.trainable(), allow_unused=True)
    return _Pass(gradients, float(loss.detach()), torch.stack([logprobs_N.detach(), old_N]))


def _weigh(
    network: Network,
    encoder: ScreenEncoder,
    trajectories: Sequence[Trajectory],
    settings: UpdateSettings,
) -> list[_Weighted]:
    device = network.device
    weighted = []
    for trajectory in trajectories:
        for sequence in join_turns((turn.screenshot, turn.tokens) for turn in trajectory.turns):
            if sequence.sampled_at:
                old_N = torch.tensor(sequence.sampled_logprobs, device=device)
                weighted.append(
                    _Weighted(sequence, torch.full_like(old_N, trajectory.advantage), old_N)
                )
    if settings.kl_penalty_coef == 0 or not weighted:
        return weighted
    return _penalise(network, encoder, weighted, settings)


def _penalise(
    network: Network, encoder: ScreenEncoder, weighted: list[_Weighted], settings: UpdateSettings
) -> list[_Weighted]:
    base: list[Tensor] = [torch.zeros(0)] * len(weighted)
    with torch.no_grad(), network.adapted.disable_adapter():
        batches = list(passes([item.sequence for item in weighted]))

        def logprobs_of(rows: list[int]) -> Tensor:
            return completion_logprobs(
                network, encoder, [weighted[row].sequence for row in rows], settings.temperature
            )

        for rows, logprobs_N in zip(
            batches, parallel_map(logprobs_of, batches, network.device), strict=True
        ):
            parts = torch.split(
                logprobs_N, [len(weighted[row].sequence.sampled_at) for row in rows]
            )
            for row, part_N in zip(rows, parts, strict=True):
                base[row] = part_N
    old_N = torch.cat([item.old_logprobs_N for item in weighted])
    advantages_N = torch.cat([item.advantages_N for item in weighted])
    penalised_N = kl_penalised(advantages_N, old_N, torch.cat(base), settings.kl_penalty_coef)
    each = torch.split(penalised_N, [len(item.old_logprobs_N) for item in weighted])
    return [
        _Weighted(item.sequence, part_N, item.old_logprobs_N)
        for item, part_N in zip(weighted, each, strict=True)
    ]


def _split(weighted: list[_Weighted], settings: UpdateSettings) -> list[list[_Weighted]]:
    """As even as possible, after a shuffle by the seed; never an empty part."""
    shuffled = random.Random(settings.seed).sample(weighted, len(weighted))  # noqa: S311  # order, not secrets
    num_parts = min(settings.num_substeps, len(shuffled))
    bounds = (
        [len(shuffled) * part // num_parts for part in range(num_parts + 1)] if num_parts else []
    )
    return [shuffled[start:end] for start, end in itertools.pairwise(bounds)]


def _step(network: Network, optimizer: torch.optim.AdamW, settings: UpdateSettings) -> float:
    """One optimiser step; returns the gradient's norm before clipping."""
    limit = settings.max_gradient_norm or float("inf")
    norm = torch.nn.utils.clip_grad_norm_(network.trainable(), limit)
    num_done = _num_steps(optimizer)
    warm = min(1.0, (num_done + 1) / settings.warmup_steps) if settings.warmup_steps else 1.0
    for group in optimizer.param_groups:
        group["lr"] = settings.learning_rate * warm
    optimizer.step()
    return float(norm)


def _num_steps(optimizer: torch.optim.AdamW) -> int:
    states = list(optimizer.state.values())
    return int(states[0]["step"]) if states else 0

"""Advantages and returns from the rewards of tokens and the values of the head, by GAE.

Axes: B trajectories, T completion tokens of the longest, N completion tokens of one sequence.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from producer.algorithms.token_advantages import gae
from producer.policy.learner import Trajectory, UpdateSettings, ValueResult
from producer.policy.torch_policy.training_sequences import TrainingSequence
from producer.policy.torch_policy.trajectory_rows import mean_advantages, trajectory_rows


def needs_values(trajectories: Sequence[Trajectory]) -> bool:
    """Whether advantages are computed from rewards of tokens; ValueError if only some are."""
    given = {
        trajectory.token_rewards is not None for trajectory in trajectories if trajectory.is_trained
    }
    if len(given) > 1:
        message = "token_rewards are given for some of the trained trajectories; give them for all"
        raise ValueError(message)
    return given == {True}


def with_value_targets(
    sequences: Sequence[TrainingSequence],
    values: Sequence[Tensor],
    settings: UpdateSettings,
) -> list[TrainingSequence]:
    """The sequences with advantages, whitened over all of them, and returns.

    `values`: of each sequence's tokens, before the update. All sequences have rewards.
    """
    if not sequences:
        return []
    rows = trajectory_rows(sequences)
    # A loop over tokens: on the processor, in float64.
    result = gae(
        rows.rows([sequence.rewards_N for sequence in sequences if sequence.rewards_N is not None]),
        rows.rows(values),
        rows.mask_BT,
        gamma=settings.gae_gamma,
        lam=settings.gae_lambda,
    )
    advantages = rows.parts(result.advantages_BT, values)
    returns = rows.parts(result.returns_BT, values)
    return [
        replace(one, advantages_N=advantages_N, values_N=values_N, returns_N=returns_N)
        for one, advantages_N, values_N, returns_N in zip(
            sequences, advantages, values, returns, strict=True
        )
    ]


def value_result(
    trajectories: Sequence[Trajectory],
    sequences: Sequence[TrainingSequence],
    *,
    loss_per_token: float,
    clip_fraction: float,
    gradient_norm: float,
) -> ValueResult:
    """Measurements of an update with a value head; `sequences` are those that were trained on."""
    values_N, returns_N = (
        torch.cat([tensor for tensor in tensors if tensor is not None]).double()
        for tensors in (
            [sequence.values_N for sequence in sequences],
            [sequence.returns_N for sequence in sequences],
        )
    )
    variance = float(returns_N.var(correction=0))
    unexplained = float((returns_N - values_N).var(correction=0))
    return ValueResult(
        advantages=mean_advantages(sequences, len(trajectories)),
        loss_per_token=loss_per_token,
        clip_fraction=clip_fraction,
        mean=float(values_N.mean()),
        explained_variance=1 - unexplained / variance if variance > 0 else None,
        gradient_norm=gradient_norm,
    )

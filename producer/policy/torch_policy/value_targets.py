"""Advantages and returns from the rewards of tokens and the values of the head, by GAE.

A trajectory is one row however many sequences its turns make: rewards flow back over a cut prompt.

Axes: B trajectories, T completion tokens of the longest, N completion tokens of one sequence.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from producer.algorithms.token_advantages import gae
from producer.policy.learner import Trajectory, UpdateSettings, ValueResult
from producer.policy.torch_policy.training_sequences import TrainingSequence


def needs_values(trajectories: Sequence[Trajectory]) -> bool:
    """Whether advantages are computed from rewards of tokens; ValueError if only some are."""
    given = {one.token_rewards is not None for one in trajectories if one.is_trained}
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
    rows: dict[int, list[int]] = {}
    for at, one in enumerate(sequences):
        rows.setdefault(one.trajectory, []).append(at)
    found = list(sequences)
    if not found:
        return found
    rewards = [one.rewards_N for one in sequences if one.rewards_N is not None]
    # A loop over tokens: on the processor, in float64.
    rewards_BT, values_BT = (
        _rows([torch.cat([numbers[at] for at in places]) for places in rows.values()])
        for numbers in (rewards, values)
    )
    lengths = [sum(len(values[at]) for at in places) for places in rows.values()]
    mask_BT = torch.arange(values_BT.shape[1]) < torch.tensor(lengths)[:, None]
    result = gae(rewards_BT, values_BT, mask_BT, gamma=settings.gae_gamma, lam=settings.gae_lambda)
    for row, places in enumerate(rows.values()):
        start = 0
        for at in places:
            part = slice(start, start + len(values[at]))
            start = part.stop
            found[at] = replace(
                sequences[at],
                advantages_N=result.advantages_BT[row, part].to(values[at]),
                values_N=values[at],
                returns_N=result.returns_BT[row, part].to(values[at]),
            )
    return found


def value_result(
    trajectories: Sequence[Trajectory],
    sequences: Sequence[TrainingSequence],
    *,
    loss_per_token: float,
    clip_fraction: float,
    gradient_norm: float,
) -> ValueResult:
    """Measurements of an update with a value head; `sequences` are those that were trained on."""
    by_trajectory: dict[int, list[Tensor]] = {}
    for one in sequences:
        by_trajectory.setdefault(one.trajectory, []).append(one.advantages_N)
    values_N, returns_N = (
        torch.cat([tensor for tensor in tensors if tensor is not None]).double()
        for tensors in ([one.values_N for one in sequences], [one.returns_N for one in sequences])
    )
    variance = float(returns_N.var(correction=0))
    unexplained = float((returns_N - values_N).var(correction=0))
    return ValueResult(
        advantages=tuple(
            float(torch.cat(by_trajectory[at]).mean()) if at in by_trajectory else None
            for at in range(len(trajectories))
        ),
        loss_per_token=loss_per_token,
        clip_fraction=clip_fraction,
        mean=float(values_N.mean()),
        explained_variance=1 - unexplained / variance if variance > 0 else None,
        gradient_norm=gradient_norm,
    )


def _rows(rows: Sequence[Tensor]) -> Tensor:
    """[B, T] in float64 on the processor, padded with 0 on the right."""
    return torch.nn.utils.rnn.pad_sequence(
        [row.detach().cpu().double() for row in rows], batch_first=True
    )

"""Token sequences with what the loss needs of every completion token, and their padded form.

A trajectory whose turns extend each other is one sequence; where a prompt was cut, another begins.

Axes: B sequences, T completion tokens of the longest, N completion tokens of all in order.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from producer.policy.learner import Trajectory
from producer.policy.torch_policy.sequences import TokenSequence, join_turns


@dataclass(frozen=True, slots=True)
class TrainingSequence:
    """A sequence with advantage and sampled log-prob of each completion token; at least one."""

    tokens: TokenSequence
    advantages_N: Tensor
    sampled_logprobs_N: Tensor
    is_trained: bool
    """False: only its KL divergence and entropy are measured."""
    trajectory: int
    """Its place in the batch."""
    base_logprobs_N: Tensor | None = None
    """Under the base policy; None: there is no KL penalty."""
    values_N: Tensor | None = None
    returns_N: Tensor | None = None
    """The value head's before the update and what it is trained towards; None: not computed."""


@dataclass(frozen=True, slots=True)
class PaddedBatch:
    """Sequences of one micro-batch, their completion tokens side by side."""

    sampled_logprobs_BT: Tensor
    advantages_BT: Tensor
    base_logprobs_BT: Tensor | None
    values_BT: Tensor | None
    returns_BT: Tensor | None
    mask_BT: Tensor
    """True on completion tokens; row by row they are the N tokens in order."""


def training_sequences(
    trajectories: Sequence[Trajectory], device: torch.device
) -> list[TrainingSequence]:
    """Every sequence of the trajectories that has a completion token."""
    sequences = []
    for number, trajectory in enumerate(trajectories):
        advantages = _token_advantages(trajectory, device)
        start = 0
        for tokens in join_turns((turn.screenshot, turn.tokens) for turn in trajectory.turns):
            part = slice(start, start + len(tokens.sampled_at))
            start = part.stop
            if tokens.sampled_at:
                sampled_N = torch.tensor(tokens.sampled_logprobs, device=device)
                sequences.append(
                    TrainingSequence(
                        tokens, advantages[part], sampled_N, trajectory.is_trained, number
                    )
                )
    return sequences


def pad(sequences: Sequence[TrainingSequence], *, is_per_sequence: bool) -> PaddedBatch:
    """A row per sequence, padded with 0 to the longest; otherwise all tokens as one row."""
    lengths = [len(sequence.sampled_logprobs_N) for sequence in sequences]
    if not is_per_sequence:
        lengths = [sum(lengths)]
    device = sequences[0].sampled_logprobs_N.device
    at_T = torch.arange(max(lengths), device=device)
    mask_BT = at_T < torch.tensor(lengths, device=device)[:, None]

    def optional(values: Sequence[Tensor | None]) -> Tensor | None:
        given = [value for value in values if value is not None]
        return unflatten(given, mask_BT) if given else None

    return PaddedBatch(
        sampled_logprobs_BT=unflatten(
            [sequence.sampled_logprobs_N for sequence in sequences], mask_BT
        ),
        advantages_BT=unflatten([sequence.advantages_N for sequence in sequences], mask_BT),
        base_logprobs_BT=optional([sequence.base_logprobs_N for sequence in sequences]),
        values_BT=optional([sequence.values_N for sequence in sequences]),
        returns_BT=optional([sequence.returns_N for sequence in sequences]),
        mask_BT=mask_BT,
    )


def unflatten(values: Sequence[Tensor], mask_BT: Tensor) -> Tensor:
    """[B, T] with the values, in order, where the mask is; 0 elsewhere. Passes gradients."""
    values_N = torch.cat(tuple(values))
    return torch.zeros_like(mask_BT, dtype=values_N.dtype).masked_scatter(mask_BT, values_N)


def _token_advantages(trajectory: Trajectory, device: torch.device) -> Tensor:
    """One number per completion token of all turns, in order."""
    advantage = trajectory.advantage
    if isinstance(advantage, tuple):
        return torch.tensor([number for turn in advantage for number in turn], device=device)
    return torch.full((trajectory.num_tokens,), advantage, dtype=torch.float32, device=device)

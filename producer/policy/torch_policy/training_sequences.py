"""Token sequences with the loss's inputs for every completion token, and their padded form.

A trajectory whose turns extend each other is one sequence; where a prompt was cut, a new one
begins.

For sums over a trajectory there are rows, one per trajectory, whatever the number of its sequences.

Axes: B sequences or trajectories, T completion tokens of the longest, N completion tokens in order.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from producer.policy.learner import Trajectory
from producer.policy.sequences import TokenSequence, trajectory_parts


@dataclass(frozen=True, slots=True)
class TrainingSequence:
    """A sequence with advantage and sampled log-prob of each completion token; at least one."""

    tokens: TokenSequence
    advantages_N: Tensor
    sampled_logprobs_N: Tensor
    is_trained: bool
    """False: only its KL divergence and entropy are measured."""
    trajectory: int
    """Index of the trajectory in the batch."""
    base_logprobs_N: Tensor | None = None
    """Log-probs under the base policy; None without a KL penalty."""
    learner_logprobs_N: Tensor | None = None
    """Log-probs under the policy before the update; None without `importance_cap`."""
    values_N: Tensor | None = None
    returns_N: Tensor | None = None
    """Values before the update and the returns that they are trained towards; None without a value
    head."""


MicroBatch = Sequence[Sequence[TrainingSequence]]
"""Rows of a micro-batch, each with its sequences; at least one of each."""


def token_rows(micro_batch: MicroBatch) -> list[list[TokenSequence]]:
    """The token sequences of the rows."""
    return [[sequence.tokens for sequence in row] for row in micro_batch]


@dataclass(frozen=True, slots=True)
class PaddedBatch:
    """Sequences of one micro-batch, with their completion tokens padded."""

    sampled_logprobs_BT: Tensor
    advantages_BT: Tensor
    base_logprobs_BT: Tensor | None
    learner_logprobs_BT: Tensor | None
    values_BT: Tensor | None
    returns_BT: Tensor | None
    mask_BT: Tensor
    """True on completion tokens; row by row they are the N tokens in order."""


def training_sequences(
    trajectories: Sequence[Trajectory], device: torch.device
) -> list[TrainingSequence]:
    """All sequences of the trajectories that have a completion token."""
    return [
        TrainingSequence(
            tokens,
            torch.tensor(advantages, dtype=torch.float32, device=device),
            torch.tensor(tokens.sampled_logprobs, device=device),
            trajectories[number].is_trained,
            number,
        )
        for tokens, advantages, number in trajectory_parts(trajectories)
    ]


def pad(sequences: Sequence[TrainingSequence], *, is_per_sequence: bool) -> PaddedBatch:
    """A row per sequence, padded with 0 to the longest, or else all tokens in one row."""
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
        learner_logprobs_BT=optional([sequence.learner_logprobs_N for sequence in sequences]),
        values_BT=optional([sequence.values_N for sequence in sequences]),
        returns_BT=optional([sequence.returns_N for sequence in sequences]),
        mask_BT=mask_BT,
    )


def unflatten(values: Sequence[Tensor], mask_BT: Tensor) -> Tensor:
    """[B, T] with `values`, in order, where the mask is True; 0 elsewhere. Differentiable."""
    values_N = torch.cat(tuple(values))
    return torch.zeros_like(mask_BT, dtype=values_N.dtype).masked_scatter(mask_BT, values_N)


@dataclass(frozen=True, slots=True)
class TrajectoryRows:
    """The sequences that make up each row; at least one row."""

    trajectories: tuple[int, ...]
    """Index in the batch of each row's trajectory."""
    places: tuple[tuple[int, ...], ...]
    """Indices of each row's sequences, in order."""
    mask_BT: Tensor
    """True on tokens."""

    def rows(self, numbers: Sequence[Tensor]) -> Tensor:
        """[B, T] from [N] per sequence, on the CPU, in float64, padded with 0."""
        return torch.nn.utils.rnn.pad_sequence(
            [
                torch.cat([numbers[at].detach() for at in places]).cpu().double()
                for places in self.places
            ],
            batch_first=True,
        )

    def parts(self, numbers_BT: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
        """[N] per sequence, with the lengths, device and dtype of `like`."""
        found = list(like)
        for row, places in enumerate(self.places):
            start = 0
            for at in places:
                part = slice(start, start + len(like[at]))
                start = part.stop
                found[at] = numbers_BT[row, part].to(like[at])
        return found


def trajectory_rows(sequences: Sequence[TrainingSequence]) -> TrajectoryRows:
    """The rows of these sequences, ordered by each trajectory's first sequence."""
    places: dict[int, list[int]] = {}
    for at, one in enumerate(sequences):
        places.setdefault(one.trajectory, []).append(at)
    lengths = torch.tensor(
        [sum(len(sequences[at].sampled_logprobs_N) for at in own) for own in places.values()]
    )
    return TrajectoryRows(
        trajectories=tuple(places),
        places=tuple(tuple(own) for own in places.values()),
        mask_BT=torch.arange(int(lengths.max())) < lengths[:, None],
    )


def mean_advantages(
    sequences: Sequence[TrainingSequence], num_trajectories: int
) -> tuple[float | None, ...]:
    """Mean advantage over the tokens of each trajectory; None for one without tokens here."""
    advantages: dict[int, list[Tensor]] = {}
    for sequence in sequences:
        advantages.setdefault(sequence.trajectory, []).append(sequence.advantages_N)
    return tuple(
        float(torch.cat(advantages[at]).mean()) if at in advantages else None
        for at in range(num_trajectories)
    )

"""Numbers of completion tokens, from sequence by sequence to one row per trajectory and back.

A trajectory is one row however many sequences its turns make: what is summed over it passes over a
cut prompt.

Axes: B trajectories, T completion tokens of the longest, N completion tokens of one sequence.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from producer.policy.torch_policy.training_sequences import TrainingSequence


@dataclass(frozen=True, slots=True)
class TrajectoryRows:
    """Which sequences make up which row; at least one."""

    trajectories: tuple[int, ...]
    """Of each row its place in the batch."""
    places: tuple[tuple[int, ...], ...]
    """Of each row its sequences, in order."""
    mask_BT: Tensor
    """True on tokens."""

    def rows(self, numbers: Sequence[Tensor]) -> Tensor:
        """[B, T] from [N] of each sequence: on the processor, in float64, padded with 0."""
        return torch.nn.utils.rnn.pad_sequence(
            [
                torch.cat([numbers[at].detach() for at in places]).cpu().double()
                for places in self.places
            ],
            batch_first=True,
        )

    def parts(self, numbers_BT: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
        """[N] of each sequence, with the lengths, device and dtype of `like`."""
        found = list(like)
        for row, places in enumerate(self.places):
            start = 0
            for at in places:
                part = slice(start, start + len(like[at]))
                start = part.stop
                found[at] = numbers_BT[row, part].to(like[at])
        return found


def trajectory_rows(sequences: Sequence[TrainingSequence]) -> TrajectoryRows:
    """The rows of these sequences, by the first of each trajectory."""
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
    """Of each trajectory the mean over its tokens; None where it has none among these."""
    advantages: dict[int, list[Tensor]] = {}
    for sequence in sequences:
        advantages.setdefault(sequence.trajectory, []).append(sequence.advantages_N)
    return tuple(
        float(torch.cat(advantages[at]).mean()) if at in advantages else None
        for at in range(num_trajectories)
    )

"""Turns recorded turns into token sequences, and a batch into optimiser steps. Imports no torch.

A turn whose prompt extends the previous turn continues that turn's sequence; any other turn starts
a new sequence with its own screenshots.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest
from typing import Generic, NamedTuple, Protocol, TypeVar

from producer.algorithms.settings import UpdateSettings
from producer.environments.environment import Screenshot
from producer.policy.learner import Trajectory
from producer.policy.policy import SampledTokens
from producer.policy.prefix_clusters import cluster_by_prefix, shuffle_clusters
from producer.process_rewards.cocte import starts_of


@dataclass(slots=True)
class TokenSequence:
    """Prompts and completions in order, with the recorded log-prob of each completion token."""

    tokens: list[int] = field(default_factory=list)
    screenshots: list[Screenshot] = field(default_factory=list)
    """Screenshots in the order of their placeholders."""
    sampled_at: list[int] = field(default_factory=list)
    """Indices into `tokens` of the completion tokens; never 0."""
    sampled_logprobs: list[float] = field(default_factory=list)
    """Log-probs of the completion tokens, recorded when they were sampled, nats."""

    def append(self, turn: SampledTokens) -> None:
        """Add a turn's prompt tokens and completion."""
        self.tokens += turn.prompt_tokens
        self.sampled_at += range(len(self.tokens), len(self.tokens) + len(turn.completion_tokens))
        self.tokens += turn.completion_tokens
        self.sampled_logprobs += turn.completion_logprobs


def join_turns(
    turns: Iterable[tuple[Screenshot | None, SampledTokens]],
) -> list[TokenSequence]:
    """One sequence per chain of turns that extend each other, oldest first."""
    sequences: list[TokenSequence] = []
    screenshots: list[Screenshot] = []
    for screenshot, tokens in turns:
        shown = [] if screenshot is None else [screenshot]
        screenshots += shown
        if tokens.prompt_extends is None:
            first = len(screenshots) - tokens.num_prompt_images
            sequences.append(TokenSequence(screenshots=screenshots[first:]))
        else:
            sequences[-1].screenshots += shown
        sequences[-1].append(tokens)
    return sequences


Item = TypeVar("Item")


def split_evenly(items: Sequence[Item], num_parts: int) -> list[Sequence[Item]]:
    """Split the items, in order, into at most `num_parts` non-empty parts of nearly equal size."""
    bounds = [len(items) * part // num_parts for part in range(num_parts + 1)]
    return [items[start:end] for start, end in pairwise(bounds) if start < end]


class TrajectoryPart(NamedTuple):
    """One sequence of a trajectory, with the advantage of each of its completion tokens."""

    tokens: TokenSequence
    advantages: Sequence[float]
    trajectory: int
    """Index of the trajectory in the batch."""


def trajectory_parts(trajectories: Sequence[Trajectory]) -> Iterator[TrajectoryPart]:
    """All sequences of the trajectories that have a completion token, in order."""
    for number, trajectory in enumerate(trajectories):
        given = trajectory.advantage
        advantages = (
            [of_token for turn in given for of_token in turn]
            if isinstance(given, tuple)
            else [given] * trajectory.num_tokens
        )
        end = 0
        for tokens in join_turns((turn.screenshot, turn.tokens) for turn in trajectory.turns):
            start, end = end, end + len(tokens.sampled_at)
            if tokens.sampled_at:
                yield TrajectoryPart(tokens, advantages[start:end], number)


class HasTokens(Protocol):
    """A sequence together with data about its tokens."""

    @property
    def tokens(self) -> TokenSequence:
        """The tokens; at least one was sampled."""
        ...


Part = TypeVar("Part", bound=HasTokens)


class Substep(NamedTuple, Generic[Item]):
    """One optimiser step of an update, and the sequences that are only measured before it."""

    trained: Sequence[Item]
    """Sequences trained on; if empty, no step is taken."""
    measured: Sequence[Item]
    is_first: bool
    """Whether the step belongs to the first pass over the batch."""


def split_into_substeps(
    trained: Sequence[Part], others: Sequence[Part], settings: UpdateSettings
) -> list[Substep[Part]]:
    """The optimiser steps of an update, in order; `others` are measured during the first pass.

    The order is a seeded shuffle, so that a substep does not contain only one task's groups. With
    `group_by_prefix` it shuffles clusters of sequences with a common prefix.
    """
    rng = random.Random(settings.seed)  # noqa: S311  # order, not secrets
    if settings.group_by_prefix:
        clusters = cluster_by_prefix([_first_prompt(part.tokens) for part in trained])
        order = shuffle_clusters(clusters, rng)
    else:
        order = rng.sample(range(len(trained)), len(trained))
    steps = split_evenly([trained[index] for index in order], settings.num_substeps)
    measured = split_evenly(others, max(1, len(steps)))
    return [
        Substep(own, other, is_first=number < len(steps))
        for number, (own, other) in enumerate(
            zip_longest(steps * settings.ppo_epochs, measured, fillvalue=())
        )
    ]


def _first_prompt(sequence: TokenSequence) -> Sequence[int]:
    return sequence.tokens[: sequence.sampled_at[0]]


def token_starts(tokens: Sequence[int], decode: Callable[[Sequence[int]], str]) -> list[int]:
    """Index of each token's first character in the decoded text.

    `decode` converts tokens to text, without special tokens.
    """
    texts = [decode([token]) for token in tokens]
    if "".join(texts) == decode(tokens):
        return starts_of(texts)
    # A character spans several tokens, or the tokenizer's spaces depend on the previous token.
    return [len(decode(tokens[:at])) for at in range(len(tokens))]

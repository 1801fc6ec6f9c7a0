"""Our side of the training bench: sampling and one update of `InProcessPolicy`."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import torch

from producer.algorithms.advantages import group_advantages
from producer.algorithms.settings import UpdateSettings
from producer.codecs.compact import CompactCodec
from producer.policy.learner import Trajectory
from producer.policy.policy import SampledTokens, SampleRequest, Turn
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.loading import load_network
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.placement import Placement
from producer.seeds import derived_seed
from tests.bench.train_case import Case, PromptGroup, reward_of
from tests.support.turns import past_turn
from tests.support.update_settings import NO_OUTCOME

ADAPTER_SCALE = 0.02
"""Of the adapter's random B: with B = 0, as LoRA begins, A has no gradient to compare."""


class Spent(NamedTuple):
    """CPU-seconds of one step."""

    generation_s: float
    """Until the advantages are known."""
    update_s: float

    @property
    def total_s(self) -> float:
        """Of both."""
        return self.generation_s + self.update_s


class EndlessNetwork(Network):
    """Samples no end token, so that every answer has all its tokens."""

    @property
    def suppressed_tokens(self) -> tuple[int, ...]:
        """Placeholders and end tokens."""
        return (*super().suppressed_tokens, *sorted(self.end_tokens))


class OurTrainer:
    """A policy with the steps that a training makes of it."""

    def __init__(self, folder: Path, case: Case) -> None:
        placement = Placement(torch.device("cpu"), torch.float32)
        loaded = load_network(
            *(str(folder), case.lora_rank, 0, None, placement), lora_alpha=case.lora_alpha
        )
        randomize_adapter(loaded)
        self.network = EndlessNetwork(
            **{field.name: getattr(loaded, field.name) for field in fields(loaded)}
        )
        self.policy = InProcessPolicy(self.network, CompactCodec())
        self.case = case
        self.settings = UpdateSettings(
            loss_fn="ppo",
            clip_ratio_low=0.2,
            clip_ratio_high=0.2,
            loss_aggregation="sequence_mean",
            learning_rate=case.learning_rate,
            seed=0,
        )

    def step(self, groups: Sequence[PromptGroup], number: int) -> Spent:
        """Sample the step's rollouts and update the adapter."""
        began = time.process_time()
        trajectories = self.rollouts(groups, number)
        sampled = time.process_time()
        self.policy.update(trajectories, self.settings)
        return Spent(sampled - began, time.process_time() - sampled)

    def rollouts(self, groups: Sequence[PromptGroup], number: int) -> list[Trajectory]:
        """All rollouts of the step, decoded as one batch turn by turn, with GRPO's advantages."""
        case = self.case
        places = [(group, at) for group in groups for at in range(case.group_size)]
        turns: list[tuple[Turn, ...]] = [()] * len(places)
        for turn in range(case.num_turns):
            requests = [
                SampleRequest(
                    UUID(int=row),
                    group.task,
                    turns[row],
                    group.screens(at)[turn],
                    temperature=1.0,
                    max_tokens=case.num_tokens,
                    seed=derived_seed("bench-train-sampling", number, turn, row),
                )
                for row, (group, at) in enumerate(places)
            ]
            for row, completion in enumerate(self.policy.sample(requests)):
                shot = requests[row].screenshot
                turns[row] += (past_turn(shot, completion.text, completion.tokens),)
        for row in range(len(places)):
            self.policy.forget(UUID(int=row))
        rewards = [reward_of(list(own[-1].tokens.completion_tokens)) for own in turns]
        advantages = [
            advantage
            for start in range(0, len(places), case.group_size)
            for advantage in group_advantages(rewards[start : start + case.group_size])
        ]
        return [
            Trajectory(group.task, own, advantage, NO_OUTCOME)
            for (group, _), own, advantage in zip(places, turns, advantages, strict=True)
        ]

    def gradients(self, trajectories: Sequence[Trajectory]) -> dict[str, torch.Tensor]:
        """Of the adapter's weights, by name, in an update that changes none."""
        self.policy.update(trajectories, self.settings.model_copy(update={"learning_rate": 0.0}))
        return {
            name: weight.grad.clone()
            for name, weight in self.network.adapted.named_parameters()
            if weight.grad is not None
        }

    def largest_gap(
        self, trajectories: Sequence[Trajectory], logprobs: Sequence[Sequence[float]]
    ) -> float:
        """Largest |log-prob that an update computes - the one given|, of each trajectory's tokens.

        Hands them in as the sampler's, of which an update measures its own gap.
        """
        with_given = [
            replace(trajectory, turns=_with_logprobs(trajectory.turns, given))
            for trajectory, given in zip(trajectories, logprobs, strict=True)
        ]
        settings = self.settings.model_copy(update={"learning_rate": 0.0})
        gap = self.policy.update(with_given, settings).sampler_gap
        assert gap is not None  # there are tokens
        return gap.largest


def randomize_adapter(network: Network) -> None:
    """Draw B, which is 0 before the first update."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, weight in network.adapted.named_parameters():
            if weight.requires_grad and "lora_B" in name:
                weight.copy_(ADAPTER_SCALE * torch.randn(weight.shape, generator=generator))


def sampled_logprobs(trajectory: Trajectory) -> list[float]:
    """Of all completion tokens, as recorded when they were sampled."""
    return [logprob for turn in trajectory.turns for logprob in turn.tokens.completion_logprobs]


def _with_logprobs(turns: Sequence[Turn], logprobs: Sequence[float]) -> tuple[Turn, ...]:
    left = iter(logprobs)
    return tuple(
        replace(turn, completion=replace(turn.completion, tokens=_relabelled(turn.tokens, left)))
        for turn in turns
    )


def _relabelled(tokens: SampledTokens, logprobs: Iterator[float]) -> SampledTokens:
    own = tuple(next(logprobs) for _ in tokens.completion_tokens)
    return replace(tokens, completion_logprobs=own)

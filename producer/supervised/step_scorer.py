"""A trained process reward model: scores every step of a completion."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import torch

from producer.policy.adapter_settings import WEIGHTS, read_adapter_settings
from producer.policy.memory_demand import TOKENS_PER_MICRO_BATCH
from producer.policy.torch_policy.cpu_parallel import parallel_map
from producer.policy.torch_policy.loading import load_network, open_base
from producer.policy.torch_policy.logprobs import length_batches
from producer.policy.torch_policy.placement import choose_placement
from producer.supervised.objective import LoadedNetwork
from producer.supervised.process_reward import MarkedSteps, StepCrossEntropy
from producer.supervised.step_marks import (
    StepMarks,
    label_tokens,
    mark_steps,
    read_step_marks,
    step_texts,
)


class StepScorer:
    """Scores completions step by step. Deterministic; not thread-safe."""

    def __init__(self, network: LoadedNetwork, tokenizer: Any, marks: StepMarks) -> None:  # noqa: ANN401  # transformers
        self._network = network.eval()
        self._tokenizer = tokenizer
        self._marks = marks
        self._objective = StepCrossEntropy(label_tokens(tokenizer, marks))

    @classmethod
    def load(cls, folder: Path, device: str = "auto") -> Self:
        """Of the folder that `cua-train sql reward-model` wrote, all weights or an adapter.

        NotFoundError when it holds none, UsageError when it cannot be loaded whole.
        """
        marks = read_step_marks(folder)
        placement = choose_placement(device)
        if (folder / WEIGHTS).is_file():
            settings = read_adapter_settings(folder)
            network = load_network(*(str(settings.base_name), settings.rank, 0, folder, placement))
            return cls(network.adapted, network.tokenizer, marks)
        base = open_base(str(folder), placement)
        return cls(base.network, base.processor, marks)

    def score_steps(self, prompt: str, steps: Sequence[str]) -> list[float]:
        """Of each step: the probability, from 0 to 1, that the completion is right so far."""
        return self.score_many([(prompt, steps)])[0]

    @torch.no_grad()
    def score_many(self, completions: Sequence[tuple[str, Sequence[str]]]) -> list[list[float]]:
        """`score_steps` of many (prompt, steps), computed in batches."""
        marked = [
            mark_steps(self._tokenizer, self._marks, step_texts(prompt, steps))
            for prompt, steps in completions
        ]
        scored: list[list[float]] = [[] for _ in completions]
        asked = [index for index, one in enumerate(marked) if one.markers]
        lengths = [len(marked[index].tokens) for index in asked]
        parts = [
            [asked[at] for at in part] for part in length_batches(lengths, TOKENS_PER_MICRO_BATCH)
        ]

        def score(part: list[int]) -> list[float]:
            items = [MarkedSteps(marked[index].tokens, marked[index].markers) for index in part]
            right_M = self._objective.logprobs(self._network, items)[:, 0].exp()
            return [float(item) for item in right_M]

        for part, found in zip(
            parts, parallel_map(score, parts, self._network.device), strict=True
        ):
            at = 0
            for index in part:
                end = at + len(marked[index].markers)
                scored[index] = found[at:end]
                at = end
        return scored

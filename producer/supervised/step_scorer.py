"""A process reward model: at each step's marker, is the completion right so far?

It is trained by cross-entropy over only two label tokens, with hard labels (0, 1) or soft ones (a
probability), read at the marker's last token, as in OpenRLHF. Axes: M markers, D hidden dimension.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn import functional

from producer.policy.adapter_settings import is_adapter, read_adapter_settings
from producer.policy.memory_demand import TOKENS_PER_MICRO_BATCH
from producer.policy.torch_policy.cpu_parallel import parallel_map
from producer.policy.torch_policy.loading import load_network, open_base
from producer.policy.torch_policy.logprobs import length_batches
from producer.policy.torch_policy.placement import choose_placement
from producer.supervised.objective import (
    LoadedNetwork,
    Outcome,
    hidden_states,
    output_layer,
    padded_tokens,
)
from producer.supervised.sequences import (
    StepMarks,
    label_tokens,
    mark_steps,
    read_step_marks,
    step_texts,
)


@dataclass(frozen=True, slots=True)
class MarkedSteps:
    """A prompt and its steps, with a marker after each step."""

    tokens: tuple[int, ...]
    markers: tuple[int, ...]
    """Position of each marker's last token."""
    labels: tuple[float, ...] = ()
    """One label per marker, from 0 to 1; empty if not labelled."""


@dataclass(frozen=True, slots=True)
class StepCrossEntropy:
    """Mean cross-entropy over the markers, nats."""

    label_tokens: tuple[int, int]
    """Label tokens of a right step and of a wrong one."""

    def num_tokens(self, item: MarkedSteps) -> int:
        """Number of tokens of the item."""
        return len(item.tokens)

    def micro_batches(
        self,
        _network: LoadedNetwork,
        items: Sequence[MarkedSteps],
        max_tokens: int,
    ) -> list[list[int]]:
        """Batches by length."""
        return length_batches([self.num_tokens(item) for item in items], max_tokens)

    def num_targets(self, item: MarkedSteps) -> int:
        """Number of markers."""
        return len(item.markers)

    def loss_sum(self, network: LoadedNetwork, items: Sequence[MarkedSteps]) -> Tensor:
        """Sum over the markers of -(y log p + (1 - y) log (1 - p))."""
        logprobs_M2 = self.logprobs(network, items)
        labels_M = torch.tensor(
            [label for item in items for label in item.labels], device=logprobs_M2.device
        )
        targets_M2 = torch.stack([labels_M, 1 - labels_M], dim=1)
        return -(targets_M2 * logprobs_M2).sum()

    def outcomes(self, network: LoadedNetwork, items: Sequence[MarkedSteps]) -> list[Outcome]:
        """Outcome of each marker; a step is positive if its label is above 0.5."""
        labels = [label for item in items for label in item.labels]
        return [
            Outcome(
                loss=-(label * right + (1 - label) * wrong),
                is_right=(right > wrong) == (label > 0.5),  # noqa: PLR2004  # more right than not
                score=right,
                is_positive=label > 0.5,  # noqa: PLR2004
            )
            for (right, wrong), label in zip(
                self.logprobs(network, items).tolist(), labels, strict=True
            )
        ]

    def logprobs(self, network: LoadedNetwork, items: Sequence[MarkedSteps]) -> Tensor:
        """[M, 2]: log-probs of right and of wrong at every marker, item by item."""
        tokens_BT = padded_tokens([item.tokens for item in items], network.device)
        hidden_BTD = hidden_states(network, tokens_BT)
        places = [(row, at) for row, item in enumerate(items) for at in item.markers]
        rows_M, at_M = (
            torch.tensor(item, device=tokens_BT.device) for item in zip(*places, strict=True)
        )
        weight_VD: Tensor = output_layer(network).get_parameter("weight")
        weight_2D = weight_VD[list(self.label_tokens)]
        logits_M2 = functional.linear(hidden_BTD[rows_M, at_M], weight_2D)
        return functional.log_softmax(logits_M2.float(), dim=-1)


class StepScorer:
    """Scores completions step by step. Deterministic; not thread-safe."""

    def __init__(self, network: LoadedNetwork, tokenizer: Any, marks: StepMarks) -> None:  # noqa: ANN401  # transformers
        self._network = network.eval()
        self._tokenizer = tokenizer
        self._marks = marks
        self._objective = StepCrossEntropy(label_tokens(tokenizer, marks))

    @classmethod
    def load(cls, folder: Path, device: str = "auto") -> Self:
        """Load from the folder that `cua-train sql reward-model` wrote, all weights or an adapter.

        Raises NotFoundError if it holds neither, UsageError if it cannot be loaded completely.
        """
        marks = read_step_marks(folder)
        placement = choose_placement(device)
        if is_adapter(folder):
            settings = read_adapter_settings(folder)
            network = load_network(*(str(settings.base_name), settings.rank, 0, folder, placement))
            return cls(network.adapted, network.tokenizer, marks)
        base = open_base(str(folder), placement)
        return cls(base.network, base.processor, marks)

    def score_steps(self, prompt: str, steps: Sequence[str]) -> list[float]:
        """For each step the probability, from 0 to 1, that the completion is right so far."""
        return self.score_many([(prompt, steps)])[0]

    @torch.no_grad()
    def score_many(self, completions: Sequence[tuple[str, Sequence[str]]]) -> list[list[float]]:
        """Apply `score_steps` to many (prompt, steps) pairs, in batches."""
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
            items = [MarkedSteps(*marked[index]) for index in part]
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

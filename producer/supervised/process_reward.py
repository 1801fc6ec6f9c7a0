"""The objective of a process reward model: at each step's marker, is the completion right so far?

Cross-entropy over the two label tokens alone, with hard labels (0, 1) or soft ones (a probability).
Read at the marker's last token, as OpenRLHF does. Axes: M markers, D hidden dimension.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from producer.supervised.objective import (
    LoadedNetwork,
    hidden_states,
    output_layer,
    padded_tokens,
)


@dataclass(frozen=True, slots=True)
class MarkedSteps:
    """A prompt and steps, with a marker after each."""

    tokens: tuple[int, ...]
    markers: tuple[int, ...]
    """Position of each marker's last token."""
    labels: tuple[float, ...] = ()
    """One per marker, from 0 to 1; empty: not labelled."""


@dataclass(frozen=True, slots=True)
class StepCrossEntropy:
    """Mean over the markers, nats."""

    label_tokens: tuple[int, int]
    """Of a right step, of a wrong one."""

    def num_tokens(self, item: MarkedSteps) -> int:
        """Length."""
        return len(item.tokens)

    def num_targets(self, item: MarkedSteps) -> int:
        """Markers."""
        return len(item.markers)

    def loss_sum(self, network: LoadedNetwork, items: Sequence[MarkedSteps]) -> Tensor:
        """Sum over the markers of -(y log p + (1 - y) log (1 - p))."""
        logprobs_M2 = self.logprobs(network, items)
        labels_M = torch.tensor(
            [label for item in items for label in item.labels], device=logprobs_M2.device
        )
        targets_M2 = torch.stack([labels_M, 1 - labels_M], dim=1)
        return -(targets_M2 * logprobs_M2).sum()

    def logprobs(self, network: LoadedNetwork, items: Sequence[MarkedSteps]) -> Tensor:
        """[M, 2]: log-probability of right and of wrong at every marker, item by item."""
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

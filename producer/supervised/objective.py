"""The objectives of a supervised training: cross-entropy over masked tokens, or another one.

Axes: B rows, T tokens padded on the right, M target tokens, D hidden dimension, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import torch
from peft import PeftModel
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedModel

from producer.policy.torch_policy.logprobs import length_batches
from producer.supervised.shared_prompts import shared_batches, shared_states


@dataclass(frozen=True, slots=True)
class Example:
    """A token sequence, and which of its tokens are targets."""

    tokens: tuple[int, ...]
    loss_mask: tuple[bool, ...]
    """As long as `tokens`; the first entry is False, because nothing predicts that token."""

    def __post_init__(self) -> None:
        """Raises ValueError if the mask's length differs or no token is a target."""
        if len(self.tokens) != len(self.loss_mask):
            message = f"{len(self.tokens)} tokens have a mask of {len(self.loss_mask)}"
            raise ValueError(message)
        if not any(self.loss_mask):
            message = "no token of the example is a target"
            raise ValueError(message)
        if self.loss_mask[0]:
            message = "the first token cannot be a target: nothing comes before it"
            raise ValueError(message)


LoadedNetwork: TypeAlias = PreTrainedModel | PeftModel
"""Either all of its weights are trained, or those of its adapter."""


class Outcome(NamedTuple):
    """The outcome of one target of a held-out item."""

    loss: float
    is_right: bool
    score: float = 0.0
    """Score that separates positives from negatives, for objectives with classes."""
    is_positive: bool | None = None
    """None if the objective has no classes."""


Item = TypeVar("Item")
Item_contra = TypeVar("Item_contra", contravariant=True)


class Objective(Protocol[Item_contra]):
    """A loss over items of one kind. Stateless; called from several threads at once.

    An item's `repr` must contain everything about it, because a saved state identifies its items by
    their hash.
    """

    def num_tokens(self, item: Item_contra) -> int:
        """Number of tokens of the item's longest sequence."""
        ...

    def micro_batches(
        self, network: LoadedNetwork, items: Sequence[Item_contra], max_tokens: int
    ) -> list[list[int]]:
        """Indices of the items, in batches of at most `max_tokens` padded tokens.

        A longer item, or a longer row shared by several items, is a batch of its own.
        """
        ...

    def num_targets(self, item: Item_contra) -> float:
        """The item's share of the denominator of a batch's mean; above 0."""
        ...

    def loss_sum(self, network: LoadedNetwork, items: Sequence[Item_contra]) -> Tensor:
        """Loss summed over the items' targets: a scalar with gradient."""
        ...


@dataclass(frozen=True, slots=True)
class CrossEntropy:
    """Mean negative log-likelihood of the target tokens, nats."""

    shares_prefixes: bool = False
    """Pack examples with a common prefix into one row. The same loss, up to rounding."""

    def num_tokens(self, item: Example) -> int:
        """Number of tokens of the example."""
        return len(item.tokens)

    def micro_batches(
        self, network: LoadedNetwork, items: Sequence[Example], max_tokens: int
    ) -> list[list[int]]:
        """Batches by length, or of packed rows with `shares_prefixes`."""
        sequences = [item.tokens for item in items]
        if self.shares_prefixes:
            return shared_batches(_base(network), sequences, max_tokens)
        return length_batches([*map(len, sequences)], max_tokens)

    def num_targets(self, item: Example) -> int:
        """Number of target tokens."""
        return sum(item.loss_mask)

    def loss_sum(self, network: LoadedNetwork, items: Sequence[Example]) -> Tensor:
        """Sum of -log p over the target tokens; the output layer runs only on those."""
        logits_MV, targets_M = self._logits(network, items)
        return functional.cross_entropy(logits_MV, targets_M, reduction="sum")

    def outcomes(self, network: LoadedNetwork, items: Sequence[Example]) -> list[Outcome]:
        """Outcome of each target token, which is right if it is the most probable one."""
        logits_MV, targets_M = self._logits(network, items)
        losses_M = functional.cross_entropy(logits_MV, targets_M, reduction="none")
        right_M = logits_MV.argmax(dim=-1) == targets_M
        return list(map(Outcome, losses_M.tolist(), right_M.tolist()))

    def _logits(self, network: LoadedNetwork, items: Sequence[Example]) -> tuple[Tensor, Tensor]:
        if not self.shares_prefixes:
            return target_logits(network, items)
        targets = [
            [at for at, is_target in enumerate(item.loss_mask) if is_target] for item in items
        ]
        before = [[at - 1 for at in own] for own in targets]
        states_MD = shared_states(_base(network), [item.tokens for item in items], before)
        tokens = [item.tokens[at] for item, own in zip(items, targets, strict=True) for at in own]
        logits_MV: Tensor = output_layer(network)(states_MD)
        return logits_MV.float(), torch.tensor(tokens, device=logits_MV.device)


def autocast(network: LoadedNetwork, *, is_bfloat16: bool) -> torch.autocast:
    """Context that computes products in bfloat16 if `is_bfloat16`. Per thread, as in torch."""
    return torch.autocast(network.device.type, dtype=torch.bfloat16, enabled=is_bfloat16)


def target_logits(network: LoadedNetwork, items: Sequence[Example]) -> tuple[Tensor, Tensor]:
    """Logits [M, V] before the target tokens, in float32, and those tokens [M], item by item."""
    tokens_BT = padded_tokens([item.tokens for item in items], network.device)
    is_target_BT = torch.zeros_like(tokens_BT, dtype=torch.bool)
    for row, item in enumerate(items):
        is_target_BT[row, : len(item.tokens)] = torch.tensor(item.loss_mask)
    rows_M, at_M = torch.nonzero(is_target_BT, as_tuple=True)
    hidden_BTD = hidden_states(network, tokens_BT)
    logits_MV: Tensor = output_layer(network)(hidden_BTD[rows_M, at_M - 1])
    return logits_MV.float(), tokens_BT[rows_M, at_M]


def padded_tokens(sequences: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    """[B, T], padded with 0 on the right, where causal attention never looks."""
    tokens_BT = torch.zeros((len(sequences), max(map(len, sequences))), dtype=torch.long)
    for row, tokens in enumerate(sequences):
        tokens_BT[row, : len(tokens)] = torch.tensor(tokens)
    return tokens_BT.to(device)


def hidden_states(network: LoadedNetwork, tokens_BT: Tensor) -> Tensor:
    """[B, T, D]: last hidden states of text, through the adapter if there is one."""
    hidden: Tensor = (
        _base(network).get_decoder()(input_ids=tokens_BT, use_cache=False).last_hidden_state
    )
    return hidden


def output_layer(network: LoadedNetwork) -> torch.nn.Module:
    """The layer from hidden states to logits."""
    layer: torch.nn.Module = _base(network).get_output_embeddings()
    return layer


def _base(network: LoadedNetwork) -> Any:  # noqa: ANN401  # transformers' own class
    """The base network; its layers carry the adapter."""
    return network.get_base_model() if isinstance(network, PeftModel) else network

"""What a supervised training minimises: cross-entropy over masked tokens, or a hook of that form.

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
    """A token sequence and which of its tokens are to be imitated."""

    tokens: tuple[int, ...]
    loss_mask: tuple[bool, ...]
    """As long as `tokens`; the first is False, because nothing predicts it."""

    def __post_init__(self) -> None:
        """ValueError if the mask does not fit or no token is a target."""
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
"""All of its weights, or those of its adapter, are trained."""


class Outcome(NamedTuple):
    """One target of a held-out item."""

    loss: float
    is_right: bool
    score: float = 0.0
    """Of objectives with classes: what tells a positive from a negative."""
    is_positive: bool | None = None
    """None: the objective has no classes."""


Item = TypeVar("Item")
Item_contra = TypeVar("Item_contra", contravariant=True)


class Objective(Protocol[Item_contra]):
    """A loss over items of one kind. Stateless; called from several threads at once.

    An item's `repr` must tell all of it, because a saved state names its items by their hash.
    """

    def num_tokens(self, item: Item_contra) -> int:
        """Of its longest sequence."""
        ...

    def micro_batches(
        self, network: LoadedNetwork, items: Sequence[Item_contra], max_tokens: int
    ) -> list[list[int]]:
        """Indices of the items, in batches of at most `max_tokens` padded tokens.

        A longer item, or row that several share, is a batch of its own.
        """
        ...

    def num_targets(self, item: Item_contra) -> float:
        """What the item adds to the denominator of a batch's mean; above 0."""
        ...

    def loss_sum(self, network: LoadedNetwork, items: Sequence[Item_contra]) -> Tensor:
        """Scalar with gradient: the sum over the items' targets."""
        ...


@dataclass(frozen=True, slots=True)
class CrossEntropy:
    """Mean negative log-likelihood of the target tokens, nats."""

    shares_prefixes: bool = False
    """Pack examples with a common prefix into one row. The same loss, up to rounding."""

    def num_tokens(self, item: Example) -> int:
        """Length."""
        return len(item.tokens)

    def micro_batches(
        self, network: LoadedNetwork, items: Sequence[Example], max_tokens: int
    ) -> list[list[int]]:
        """By length, or of packed rows."""
        sequences = [item.tokens for item in items]
        if self.shares_prefixes:
            return shared_batches(_base(network), sequences, max_tokens)
        return length_batches([*map(len, sequences)], max_tokens)

    def num_targets(self, item: Example) -> int:
        """Target tokens."""
        return sum(item.loss_mask)

    def loss_sum(self, network: LoadedNetwork, items: Sequence[Example]) -> Tensor:
        """Sum of -log p over the target tokens; the output layer runs on those alone."""
        logits_MV, targets_M = self._logits(network, items)
        return functional.cross_entropy(logits_MV, targets_M, reduction="sum")

    def outcomes(self, network: LoadedNetwork, items: Sequence[Example]) -> list[Outcome]:
        """Of every target token: right if it is the most probable one."""
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
    """Inside the context products are of bfloat16, if so asked. Per thread, as torch has it."""
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
    """[B, T] with 0 on the right, where causal attention never looks."""
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
    """Hidden states to logits."""
    layer: torch.nn.Module = _base(network).get_output_embeddings()
    return layer


def _base(network: LoadedNetwork) -> Any:  # noqa: ANN401  # transformers' own class
    """Its layers carry the adapter."""
    return network.get_base_model() if isinstance(network, PeftModel) else network

"""The objective of a pairwise reward model (Bradley-Terry): the better answer scores higher.

-log sigmoid(score(chosen) - score(rejected)), mean over pairs, as TRL's RewardTrainer. The score is
the head's output at a sequence's last token. Axes: B rows, D hidden dimension.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from producer.supervised.objective import padded_tokens


@dataclass(frozen=True, slots=True)
class TokenPair:
    """Two sequences that begin with the same prompt."""

    chosen: tuple[int, ...]
    rejected: tuple[int, ...]


class BradleyTerry:
    """Over a network with a head of one output (transformers' ...ForSequenceClassification)."""

    def num_tokens(self, item: TokenPair) -> int:
        """Of both sequences, as they are computed together."""
        return 2 * max(len(item.chosen), len(item.rejected))

    def num_targets(self, _item: TokenPair) -> int:
        """One pair."""
        return 1

    def loss_sum(self, network: Any, items: Sequence[TokenPair]) -> Tensor:  # noqa: ANN401  # transformers
        """Sum over the pairs."""
        return -functional.logsigmoid(self.margins(network, items)).sum()

    def margins(self, network: Any, items: Sequence[TokenPair]) -> Tensor:  # noqa: ANN401
        """[B]: score(chosen) - score(rejected)."""
        sequences = [one for item in items for one in (item.chosen, item.rejected)]
        scores_B2 = scores(network, sequences).view(-1, 2)
        return scores_B2[:, 0] - scores_B2[:, 1]


def scores(network: Any, sequences: Sequence[tuple[int, ...]]) -> Tensor:  # noqa: ANN401
    """[B]: of each sequence, at its last token."""
    tokens_BT = padded_tokens(sequences, network.device)
    hidden_BTD = network.model(input_ids=tokens_BT, use_cache=False).last_hidden_state
    rows_B = torch.arange(len(sequences), device=tokens_BT.device)
    last_B = torch.tensor([len(sequence) - 1 for sequence in sequences], device=tokens_BT.device)
    head: Tensor = network.score(hidden_BTD[rows_B, last_B])
    return head[:, 0].float()

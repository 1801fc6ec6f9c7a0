"""The objective of a pairwise reward model (Bradley-Terry): the better answer scores higher.

-log sigmoid(score(chosen) - score(rejected)), mean over pairs, as in TRL's RewardTrainer. The score
is the head's output at a sequence's last token. Axes: B rows, D hidden dimension.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from producer.policy.torch_policy.logprobs import length_batches
from producer.supervised.objective import Outcome, padded_tokens


def scoring_network(policy: PreTrainedModel, pad_token: int, seed: int) -> PreTrainedModel:
    """The policy's layers with a fresh single-output head, drawn from `seed`; float32."""
    config = policy.config
    config.num_labels = 1
    config.pad_token_id = pad_token
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = AutoModelForSequenceClassification.from_config(config, dtype=torch.float32)
    network.model.load_state_dict(policy.model.state_dict())
    network.name_or_path = network.config._name_or_path = policy.name_or_path
    return network.to(policy.device).eval()


@dataclass(frozen=True, slots=True)
class TokenPair:
    """Two sequences that start with the same prompt."""

    chosen: tuple[int, ...]
    rejected: tuple[int, ...]


class BradleyTerry:
    """The loss, for a single-output network (transformers' ...ForSequenceClassification)."""

    def num_tokens(self, item: TokenPair) -> int:
        """Number of tokens of both sequences, which are computed together."""
        return 2 * max(len(item.chosen), len(item.rejected))

    def micro_batches(
        self,
        _network: Any,  # noqa: ANN401
        items: Sequence[TokenPair],
        max_tokens: int,
    ) -> list[list[int]]:
        """Batches by length."""
        return length_batches([self.num_tokens(item) for item in items], max_tokens)

    def num_targets(self, _item: TokenPair) -> int:
        """1: the pair."""
        return 1

    def loss_sum(self, network: Any, items: Sequence[TokenPair]) -> Tensor:  # noqa: ANN401  # transformers
        """Loss summed over the pairs."""
        return -functional.logsigmoid(self.margins(network, items)).sum()

    def outcomes(self, network: Any, items: Sequence[TokenPair]) -> list[Outcome]:  # noqa: ANN401
        """Outcome of each pair, which is right if the chosen answer scores higher."""
        margins_B = self.margins(network, items)
        losses = (-functional.logsigmoid(margins_B)).tolist()
        return [
            Outcome(loss, margin > 0)
            for loss, margin in zip(losses, margins_B.tolist(), strict=True)
        ]

    def margins(self, network: Any, items: Sequence[TokenPair]) -> Tensor:  # noqa: ANN401
        """[B]: score(chosen) - score(rejected)."""
        sequences = [answer for item in items for answer in (item.chosen, item.rejected)]
        scores_B2 = scores(network, sequences).view(-1, 2)
        return scores_B2[:, 0] - scores_B2[:, 1]


def scores(network: Any, sequences: Sequence[tuple[int, ...]]) -> Tensor:  # noqa: ANN401
    """[B]: score of each sequence, at its last token."""
    tokens_BT = padded_tokens(sequences, network.device)
    hidden_BTD = network.model(input_ids=tokens_BT, use_cache=False).last_hidden_state
    rows_B = torch.arange(len(sequences), device=tokens_BT.device)
    last_B = torch.tensor([len(sequence) - 1 for sequence in sequences], device=tokens_BT.device)
    head: Tensor = network.score(hidden_BTD[rows_B, last_B])
    return head[:, 0].float()

"""Pairwise rewards: Bradley-Terry over two sequences, scored by a head of one output."""

import math
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification

from producer.policy.torch_policy.loading import open_base
from producer.supervised.pairwise_reward import BradleyTerry, TokenPair, scores, scoring_network
from producer.text_policy.build import TextPolicySize, build_text_policy

SIZE = TextPolicySize(dim=32, layers=2, heads=2, ffn=64)


class Fixed(nn.Module):
    """A network whose score of a sequence is its last token."""

    device = torch.device("cpu")

    def model(self, input_ids: Tensor, use_cache: bool) -> Any:
        assert not use_cache
        return SimpleNamespace(last_hidden_state=input_ids[..., None].float())

    def score(self, hidden_BD: Tensor) -> Tensor:
        return hidden_BD


def test_the_loss_is_minus_log_sigmoid_of_the_difference() -> None:
    network, objective = Fixed(), BradleyTerry()
    items = [TokenPair((9, 9, 3), (1,)), TokenPair((2,), (5, 5))]
    # Scores 3 and 1, 2 and 5: differences 2 and -3.
    assert objective.margins(network, items).tolist() == [2.0, -3.0]
    expected = math.log(1 + math.exp(-2)) + math.log(1 + math.exp(3))
    assert objective.loss_sum(network, items).item() == pytest.approx(expected, abs=1e-6)
    assert sum(objective.num_targets(item) for item in items) == 2


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    folder = tmp_path_factory.mktemp("rm")
    build_text_policy(folder, ["SELECT name FROM orders"] * 5, 3, SIZE)
    base = open_base(str(folder))
    return scoring_network(base.network, base.processor.pad_token_id, seed=5), base.processor


def test_scores_are_those_of_transformers_sequence_classification(
    network: tuple[Any, Any], tmp_path: Path
) -> None:
    ours, tokenizer = network
    sequences = [(40, 41, 42), (50,), (60, 61)]
    ours.save_pretrained(tmp_path)
    plain = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert plain.config.num_labels == 1
    padded = torch.full((3, 3), tokenizer.pad_token_id)
    for row, one in enumerate(sequences):
        padded[row, : len(one)] = torch.tensor(one)
    mask = (padded != tokenizer.pad_token_id).long()
    with torch.no_grad():
        expected = plain(input_ids=padded, attention_mask=mask).logits[:, 0]
        assert scores(ours, sequences).tolist() == pytest.approx(expected.tolist(), abs=1e-5)


def test_the_loss_is_that_of_trls_reward_trainer(network: tuple[Any, Any]) -> None:
    reward_trainer = pytest.importorskip("trl").RewardTrainer
    ours, tokenizer = network
    items = [TokenPair((40, 41, 42), (43,)), TokenPair((44, 45), (46, 47, 48))]
    # Chosen first, then rejected, as TRL's collator stacks them.
    sequences = [*(item.chosen for item in items), *(item.rejected for item in items)]
    padded = torch.full((4, 3), tokenizer.pad_token_id)
    for row, one in enumerate(sequences):
        padded[row, : len(one)] = torch.tensor(one)
    inputs = {
        "input_ids": padded,
        "attention_mask": (padded != tokenizer.pad_token_id).long(),
    }
    trainer = SimpleNamespace(
        args=SimpleNamespace(center_rewards_coefficient=None),
        model=SimpleNamespace(training=False),
        accelerator=SimpleNamespace(gather=lambda item: item, gather_for_metrics=lambda item: item),
        _metrics={"eval": defaultdict(list)},
        _total_train_tokens=0,
    )
    with torch.no_grad():
        theirs = reward_trainer.compute_loss(trainer, ours, dict(inputs))
        found = BradleyTerry().loss_sum(ours, items) / len(items)
    assert float(found) == pytest.approx(float(theirs), abs=1e-6)

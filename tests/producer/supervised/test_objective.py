"""Cross-entropy over masked tokens, compared with transformers' own."""

import pytest
import torch
from transformers import PreTrainedModel

from producer.policy.torch_policy.adapters import fresh_adapter
from producer.policy.torch_policy.architectures import ARCHITECTURES
from producer.policy.torch_policy.loading import load_base
from producer.supervised.objective import CrossEntropy, Example
from tests.producer.supervised.conftest import make_examples
from tests.support.checkpoints import write_checkpoint


def transformers_loss(network: PreTrainedModel, example: Example) -> float:
    """Mean over the example's targets, by transformers."""
    tokens = torch.tensor([example.tokens])
    labels = tokens.masked_fill(~torch.tensor([example.loss_mask]), -100)
    return float(network(input_ids=tokens, labels=labels).loss.item())


@pytest.mark.parametrize("architecture", ["qwen2", "qwen3", "qwen3_vl"])
def test_the_loss_of_every_architecture_is_transformers_own(
    architecture: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp(architecture)
    write_checkpoint(folder, architecture)
    network, _ = load_base(str(folder))
    examples = make_examples(5)
    ours = CrossEntropy().loss_sum(network, examples).item()
    theirs = sum(
        transformers_loss(network, example) * sum(example.loss_mask) for example in examples
    )
    assert ours == pytest.approx(theirs, rel=1e-5)


def test_the_loss_is_that_of_the_network_with_its_adapter(network: PreTrainedModel) -> None:
    examples = make_examples(3)
    before = CrossEntropy().loss_sum(network, examples).item()
    adapted = fresh_adapter(
        network, ARCHITECTURES["qwen3"], rank=4, alpha=8, target_modules=None, seed=0
    )
    assert CrossEntropy().loss_sum(adapted, examples).item() == pytest.approx(before, rel=1e-6)
    with torch.no_grad():
        for parameter in adapted.parameters():
            if parameter.requires_grad:
                parameter.normal_(std=0.3)
    after = CrossEntropy().loss_sum(adapted, examples).item()
    theirs = sum(
        transformers_loss(adapted, example) * sum(example.loss_mask) for example in examples
    )
    assert after == pytest.approx(theirs, rel=1e-5)
    assert abs(after - before) > 0.1


@pytest.mark.parametrize(
    ("tokens", "mask", "problem"),
    [
        ((1, 2, 3), (False, True), "3 tokens have a mask of 2"),
        ((1, 2), (False, False), "no token of the example is a target"),
        ((1, 2), (True, True), "the first token cannot be a target"),
    ],
)
def test_an_example_that_cannot_be_trained_on_is_refused(
    tokens: tuple[int, ...], mask: tuple[bool, ...], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        Example(tokens, mask)

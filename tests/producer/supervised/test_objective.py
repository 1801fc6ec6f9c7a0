"""Cross-entropy over masked tokens, compared with transformers' own."""

import pytest
import torch
from torch import Tensor
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


def alike(schema: int, number: int) -> Example:
    """A prompt of 30 tokens, of which 27 are the schema's, and an answer of 2 or 3."""
    tokens = (*[schema] * 27, 40 + number, 41, 42, *[50 + number] * (2 + number % 2))
    return Example(tokens, tuple(at >= 30 for at in range(len(tokens))))


ALIKE = [alike(schema, number) for number in range(4) for schema in (3, 4, 5)]


def test_examples_that_share_what_they_begin_with_have_the_loss_of_each_alone(
    network: PreTrainedModel,
) -> None:
    examples = [*ALIKE, *make_examples(3), ALIKE[0]]
    alone = [CrossEntropy().outcomes(network, [one]) for one in examples]
    together = CrossEntropy(shares_prefixes=True).outcomes(network, examples)
    expected = [outcome.loss for own in alone for outcome in own]
    assert [outcome.loss for outcome in together] == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_gradients_of_shared_examples_are_those_of_each_alone(network: PreTrainedModel) -> None:
    def gradient(*, shares_prefixes: bool) -> Tensor:
        network.requires_grad_(requires_grad=True)
        network.zero_grad()
        CrossEntropy(shares_prefixes=shares_prefixes).loss_sum(network, ALIKE).backward()  # type: ignore[no-untyped-call]
        return torch.cat([p.grad.flatten() for p in network.parameters() if p.grad is not None])

    alone, together = gradient(shares_prefixes=False), gradient(shares_prefixes=True)
    assert float((alone - together).norm() / alone.norm()) < 1e-4


def test_a_shared_batch_counts_what_is_shared_once(network: PreTrainedModel) -> None:
    """One schema's four: 27 tokens, and 3 + 2, 3 + 3, 3 + 2, 3 + 3 of their own."""
    sharing = CrossEntropy(shares_prefixes=True)
    batches = sharing.micro_batches(network, ALIKE, 27 + 22)
    assert sorted(len(batch) for batch in batches) == [4, 4, 4]
    assert all(len({ALIKE[at].tokens[0] for at in batch}) == 1 for batch in batches)
    assert len(CrossEntropy().micro_batches(network, ALIKE, 27 + 22)) == len(ALIKE)


def test_prompts_nearly_as_long_as_a_pass_still_share_it(network: PreTrainedModel) -> None:
    """Of 32 or 33 tokens each, where a pass has 33: a row has up to 66."""
    batches = CrossEntropy(shares_prefixes=True).micro_batches(network, ALIKE, 33)
    assert sorted(len(batch) for batch in batches) == [4, 4, 4]


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

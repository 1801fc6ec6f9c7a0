"""Fixtures: tiny text networks with random weights, and examples of random tokens."""

import random
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedModel

from producer.policy.torch_policy.loading import load_base
from producer.supervised.objective import Example
from tests.support.checkpoints import write_checkpoint


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("qwen3")
    write_checkpoint(folder, "qwen3")
    return folder


@pytest.fixture
def network(folder: Path) -> PreTrainedModel:
    """All of its weights are trained."""
    network, _ = load_base(str(folder))
    network.requires_grad_(requires_grad=True)
    return network


def make_examples(num: int, seed: int = 0) -> list[Example]:
    """Of 5 to 40 tokens each, the last third of which are targets."""
    rng = random.Random(seed)
    examples = []
    for _ in range(num):
        length = rng.randint(5, 40)
        tokens = tuple(rng.randrange(3, 30) for _ in range(length))
        examples.append(Example(tokens, tuple(at >= length * 2 // 3 for at in range(length))))
    return examples


def weights(network: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {
        name: one.detach().clone() for name, one in network.named_parameters() if one.requires_grad
    }


def are_equal(some: dict[str, torch.Tensor], others: dict[str, torch.Tensor]) -> bool:
    return some.keys() == others.keys() and all(
        torch.equal(one, others[name]) for name, one in some.items()
    )

"""The initial attention: it looks one token back, and finds what followed the same token before."""

from pathlib import Path

import pytest
import torch

from producer.policy.torch_policy.loading import load_base
from producer.text_policy.build import build_text_policy
from producer.text_policy.initial_attention import lay_out_copying

LENGTH = 20
WORDS = [f"{first}{last}" for first in "bdfghklmnprst" for last in ("ade", "ilo", "umi", "oka")]


def attention(folder: Path, *, laid_out: bool) -> list[float]:
    """Mean weights of the heads on what they are laid out to look at, over a repeated text."""
    network, tokenizer = load_base(str(folder))
    if laid_out:
        lay_out_copying(network, seed=0)
    network.set_attn_implementation("eager")
    tokens = tokenizer(" ".join(WORDS[:LENGTH]))["input_ids"]
    with torch.no_grad():
        found = network(torch.tensor([[*tokens, *tokens]]), output_attentions=True).attentions

    def mean(layer: int, head: int, back: int) -> float:
        seen = [found[layer][0, head, at, at - back] for at in range(LENGTH, 2 * LENGTH)]
        return float(torch.stack(seen).mean())

    return [mean(0, 0, 1), mean(0, 1, 2), mean(1, 0, LENGTH - 1), mean(1, 1, LENGTH - 1)]


def test_laid_out_heads_copy_before_any_training(tmp_path: Path) -> None:
    build_text_policy(tmp_path, [" ".join(WORDS)], seed=0)
    assert max(attention(tmp_path, laid_out=False)) < 0.3
    one_back, two_back, followed, followed_after_next = attention(tmp_path, laid_out=True)
    assert min(one_back, two_back) > 0.8
    assert min(followed, followed_after_next) > 0.4


def test_the_layout_is_a_function_of_its_seed(tmp_path: Path) -> None:
    build_text_policy(tmp_path, [" ".join(WORDS)], seed=0)

    def weights(seed: int) -> torch.Tensor:
        network, _ = load_base(str(tmp_path))
        lay_out_copying(network, seed)
        return torch.cat([parameter.detach().flatten() for parameter in network.parameters()])

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))
    assert bool(torch.isfinite(weights(1)).all())


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)

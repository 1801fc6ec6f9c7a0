"""Sampling with the adapter merged into the base weights."""

import pytest
import torch

from producer.policy.torch_policy import adapters as module
from producer.policy.torch_policy.adapters import merged_adapter
from producer.policy.torch_policy.forward import (
    Segment,
    compute_logits,
    hidden_states,
    pad_segments,
)
from producer.policy.torch_policy.network import Network
from tests.support.rounding import rounding_of_forward


def bits(network: Network) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in network.adapted.state_dict().items()}


def logits(network: Network) -> torch.Tensor:
    with torch.no_grad():
        batch = pad_segments([Segment([1, 2, 3, 4], [])], network)
        return compute_logits(network, hidden_states(network, batch))


def test_the_merged_network_gives_the_logits_of_the_adapted_one(network: Network) -> None:
    before = logits(network)
    with network.adapted.disable_adapter():
        without = logits(network)
    with merged_adapter(network.adapted):
        changed = bits(network)
        during = logits(network)
    assert (during - before).abs().max() < rounding_of_forward(
        network.base, float(before.abs().max())
    )
    assert (without - before).abs().max() > 1e-2  # the adapter changes the output
    assert any(
        not torch.equal(changed[name], tensor) for name, tensor in bits(network).items()
    )  # and was merged


def test_on_exit_every_bit_is_as_before(network: Network) -> None:
    before, logits_before = bits(network), logits(network)
    with pytest.raises(KeyError), merged_adapter(network.adapted):
        raise KeyError
    assert all(torch.equal(before[name], tensor) for name, tensor in bits(network).items())
    assert torch.equal(logits(network), logits_before)


def test_a_large_network_is_not_merged(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_MERGED_WEIGHTS", 1000)
    before = bits(network)
    with merged_adapter(network.adapted):
        assert all(torch.equal(before[name], tensor) for name, tensor in bits(network).items())

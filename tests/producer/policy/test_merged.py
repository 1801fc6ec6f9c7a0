"""Rules of sampling with the adapter inside the weights."""

import pytest
import torch

from producer.policy.torch_policy import merged
from producer.policy.torch_policy.forward import Chunk, hidden_states, logits_of, pad
from producer.policy.torch_policy.merged import adapter_merged
from producer.policy.torch_policy.network import Network
from tests.support.rounding import rounding_of_forward


def bits(network: Network) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in network.adapted.state_dict().items()}


def logits(network: Network) -> torch.Tensor:
    with torch.no_grad():
        return logits_of(network, hidden_states(network, pad([Chunk([1, 2, 3, 4], [])], network)))


def test_the_merged_network_says_what_the_adapted_one_says(network: Network) -> None:
    before = logits(network)
    with network.adapted.disable_adapter():
        without = logits(network)
    with adapter_merged(network):
        changed = bits(network)
        during = logits(network)
    assert (during - before).abs().max() < rounding_of_forward(
        network.base, float(before.abs().max())
    )
    assert (without - before).abs().max() > 1e-2  # the adapter does something
    assert any(
        not torch.equal(changed[name], tensor) for name, tensor in bits(network).items()
    )  # and it was inside the weights


def test_afterwards_every_bit_is_as_before(network: Network) -> None:
    before, said = bits(network), logits(network)
    with pytest.raises(KeyError), adapter_merged(network):
        raise KeyError
    assert all(torch.equal(before[name], tensor) for name, tensor in bits(network).items())
    assert torch.equal(logits(network), said)


def test_a_large_network_is_left_as_it_is(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merged, "MERGED_UP_TO", 1000)
    before = bits(network)
    with adapter_merged(network):
        assert all(torch.equal(before[name], tensor) for name, tensor in bits(network).items())

"""Training of all weights: its update, reference, memory and checkpoint."""

from pathlib import Path

import pytest
import torch

from producer.policy.compute_settings import PolicySettings
from producer.policy.memory_demand import RunExtent, Workload, memory_demand
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.loading import load_network, open_base
from producer.policy.torch_policy.memory_check import size_of_network
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.training_sequences import training_sequences
from producer.policy.torch_policy.update_passes import UpdatePasses
from tests.support.update_settings import changed

from .conftest import SETTINGS, ClickOnly, Play, are_equal, trajectory, weights


@pytest.fixture
def network(base_folder: Path) -> Network:
    return load_network(str(base_folder), lora_rank=4, seed=1, trains_all=True)


def stored(network: Network, folder: Path) -> dict[str, torch.Tensor]:
    """The policy's weights as a checkpoint in this folder has them."""
    policy = InProcessPolicy(network, ClickOnly())
    policy.save_checkpoint(folder)
    return dict(open_base(str(folder)).network.state_dict())


def test_every_weight_outside_the_tower_is_trained_and_begins_as_the_base(
    network: Network, base_folder: Path, tmp_path: Path
) -> None:
    plain = open_base(str(base_folder)).network
    trained = sum(parameter.numel() for parameter in network.trainable())
    expected = sum(one.numel() for name, one in plain.named_parameters() if ".visual." not in name)
    assert trained == expected
    begun = stored(network, tmp_path)
    assert begun.keys() == plain.state_dict().keys()
    assert all(torch.equal(one, begun[name]) for name, one in plain.state_dict().items())


def test_an_update_is_that_of_adam_on_the_whole_network(
    policy: InProcessPolicy, network: Network, play: Play
) -> None:
    """On the policy's own samples the ratio is 1: the gradient is that of -advantage x log-prob."""
    turns = play(1, 1)
    passes = UpdatePasses(
        network, policy._encoder, SETTINGS, None, network.trainable(), network.max_workers
    )
    before = weights(network)
    logprobs_N = passes._logprobs([training_sequences([trajectory(turns, 2.0)], network.device)])
    gradients = torch.autograd.grad(-2.0 * logprobs_N.sum(), network.trainable())
    policy.update([trajectory(turns, 2.0)], SETTINGS)
    for old, gradient, new in zip(before, gradients, weights(network), strict=True):
        # Adam's first step is rate x g / (|g| + eps), whatever its betas.
        step = SETTINGS.learning_rate * gradient / (gradient.abs() + 1e-8)
        assert torch.allclose(new, old - step, atol=2e-5)
        assert gradient.abs().max() > 0


def test_the_reference_of_the_kl_penalty_is_the_policy_before_training(
    policy: InProcessPolicy, play: Play
) -> None:
    turns = play(1, 2)
    settings = changed(SETTINGS, kl_penalty_coef=0.5)
    first = policy.update([trajectory(turns, 1.0)], settings)
    assert first.kl_policy_base == pytest.approx(0, abs=1e-6)
    second = policy.update([trajectory(turns, 1.0)], settings)
    assert second.kl_policy_base == pytest.approx(0, abs=1e-6), "of what was sampled before"
    later = play(3, 2)
    third = policy.update([trajectory(later, 1.0)], settings)
    assert third.kl_policy_base is not None
    assert abs(third.kl_policy_base) > 1e-4


def test_a_state_restores_weights_and_optimiser_bit_for_bit(
    policy: InProcessPolicy, network: Network, play: Play, base_folder: Path, tmp_path: Path
) -> None:
    turns = play(1, 2)
    policy.update([trajectory(turns, 1.0)], SETTINGS)
    policy.save_state(tmp_path)
    policy.update([trajectory(turns, -1.0)], SETTINGS)
    other = load_network(str(base_folder), lora_rank=4, seed=9, trains_all=True)
    again = InProcessPolicy(other, ClickOnly())
    again.load_state(tmp_path)
    again.update([trajectory(turns, -1.0)], SETTINGS)
    assert are_equal(weights(network), weights(other))


def test_the_memory_of_all_weights_is_counted(network: Network, base_folder: Path) -> None:
    plain = open_base(str(base_folder)).network
    shapes = {name: tuple(one.shape) for name, one in plain.named_parameters()}
    size = size_of_network(network.base.config, torch.float32, shapes, 4, trains_all=True)
    assert size.num_trained == sum(parameter.numel() for parameter in network.trainable())
    extent = RunExtent(1, 1, 1, 8, is_training=True)
    work = Workload(extent, PolicySettings(str(base_folder), 4), screen_tokens=0, num_lanes=2)
    terms = {
        item.what.partition(":")[0]: item.num_bytes
        for item in memory_demand(size, work, checkpointed=True)
    }
    # A copy, its gradient, two moments, and the gradients of two passes: 6 x 4 bytes.
    assert terms["trained weights, their gradients and Adam's moments"] == 24 * size.num_trained

"""Settings of verl's trainer: entropy bonus, weight decay and epochs in an update; top_p."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from producer.policy.learner import Trajectory, UpdateResult
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.loading import load_network
from producer.policy.torch_policy.logprobs import (
    completion_states,
    state_entropies,
    token_entropies,
)
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.optimizer import make_optimizer, optimizer_step
from producer.policy.torch_policy.sampling import sample_tokens
from producer.policy.torch_policy.training_sequences import training_sequences
from tests.support.update_settings import changed

from .conftest import SETTINGS, ClickOnly, are_equal, weights

# Softmax of these: 1/4 and 3/4.
LOGITS = torch.tensor([[0.0, 1.0986123]])
ENTROPY = 0.5623351
"""1/4 ln 4 + 3/4 ln 4/3."""


@pytest.mark.parametrize("logit_bytes", [8, 2**20])
def test_the_entropy_of_a_distribution_is_that_by_hand_also_in_chunks(logit_bytes: int) -> None:
    hidden = LOGITS.repeat(3, 1).requires_grad_()
    found = token_entropies(
        lambda item: item, hidden, vocabulary=2, temperature=1.0, logit_bytes=logit_bytes
    )
    assert found.tolist() == pytest.approx([ENTROPY] * 3)
    # dH/dz_i = -p_i (log p_i + H).
    (gradient,) = torch.autograd.grad(found.sum(), hidden)
    assert gradient[0].tolist() == pytest.approx([0.2059899, -0.2059899], abs=1e-6)


def test_the_temperature_divides_the_logits_before_the_entropy() -> None:
    """At temperature 1/2 the logits are 0 and ln 9: 1/10 and 9/10."""
    found = token_entropies(lambda item: item, LOGITS, vocabulary=2, temperature=0.5)
    assert found.tolist() == pytest.approx([0.3250830])


def test_the_bonus_takes_the_weighted_mean_entropy_off_the_loss(
    policy: InProcessPolicy, network: Network, batch: list[Trajectory]
) -> None:
    """As verl: policy loss - entropy_coeff x agg(entropy)."""
    states = completion_states(
        network,
        policy._encoder,
        [
            [training_sequence.tokens]
            for training_sequence in training_sequences(batch, network.device)
        ],
    )
    mean = float(state_entropies(network, states, 1.0).detach().mean())
    settings = changed(SETTINGS, loss_aggregation="token_mean", learning_rate=0.0)
    plain = policy.update(batch, settings)
    with_bonus = policy.update(batch, changed(settings, entropy_coef=0.5))
    assert with_bonus.loss == pytest.approx(plain.loss - 0.5 * mean, abs=1e-5)


def test_the_bonus_alone_raises_the_entropy(
    policy: InProcessPolicy, network: Network, batch: list[Trajectory]
) -> None:
    def mean_entropy() -> float:
        own = [
            [training_sequence.tokens]
            for training_sequence in training_sequences(batch, network.device)
        ]
        states = completion_states(network, policy._encoder, own)
        return float(state_entropies(network, states, 1.0).detach().mean())

    still = [replace(item, advantage=0.0) for item in batch]
    before = mean_entropy()
    for _ in range(3):
        policy.update(still, changed(SETTINGS, entropy_coef=1.0))
    assert mean_entropy() > before + 0.01


def test_weight_decay_takes_its_share_of_the_weights_beside_the_gradient() -> None:
    weight = nn.Parameter(torch.tensor([2.0, -4.0]))
    optimizer = make_optimizer([weight])
    weight.grad = torch.zeros(2)
    optimizer_step(optimizer, 0.1, None, weight_decay=0.5)
    # AdamW: w - rate x decay x w = 0.95 w.
    assert weight.tolist() == pytest.approx([1.9, -3.8])


def test_an_update_decays_the_trained_weights(
    policy: InProcessPolicy, network: Network, batch: list[Trajectory]
) -> None:
    before = weights(network)
    still = [replace(item, advantage=0.0) for item in batch]
    policy.update(still, changed(SETTINGS, learning_rate=0.1, weight_decay=0.5))
    for old, new in zip(before, weights(network), strict=True):
        assert torch.allclose(new, 0.95 * old, atol=1e-6)


@pytest.mark.parametrize("num_substeps", [1, 2])
def test_two_epochs_are_two_updates_of_the_same_batch(
    base_folder: Path, batch: list[Trajectory], num_substeps: int
) -> None:
    settings = changed(SETTINGS, loss_fn="ppo", num_substeps=num_substeps)

    def trained(epochs: int, times: int) -> tuple[list[torch.Tensor], UpdateResult]:
        network = load_network(str(base_folder), lora_rank=4, seed=1)
        policy = InProcessPolicy(network, ClickOnly())
        results = [policy.update(batch, changed(settings, ppo_epochs=epochs)) for _ in range(times)]
        return weights(network), results[0]

    (one_update, both), (two_updates, first) = trained(2, 1), trained(1, 2)
    assert are_equal(one_update, two_updates)
    assert (both.num_tokens, both.num_measured_tokens) == (
        *(first.num_tokens, first.num_measured_tokens),
    )
    assert both.kl_sample_train_v1 == first.kl_sample_train_v1
    assert both.loss_per_token == first.loss_per_token


def test_top_p_draws_among_the_likeliest_tokens_that_reach_it_and_keeps_the_log_probs() -> None:
    """Of 0.05, 0.5, 0.15, 0.3 the likeliest two reach 0.6; of 0.8 the first has 5/8."""
    logits = torch.tensor([[0.05, 0.5, 0.15, 0.3]]).log().repeat(4, 1)
    uniforms = torch.tensor([0.0, 0.62, 0.63, 0.999], dtype=torch.float64)
    tokens, logprobs = sample_tokens(logits, torch.ones(4), uniforms, (), torch.tensor([0.6] * 4))
    assert tokens.tolist() == [1, 1, 3, 3]
    assert logprobs.exp().tolist() == pytest.approx([0.5, 0.5, 0.3, 0.3])


@pytest.mark.parametrize(
    ("top_p", "kept"), [(0.49, {1}), (0.51, {1, 3}), (1e-6, {1}), (1.0, {0, 1, 2, 3})]
)
def test_the_smallest_set_that_reaches_top_p_is_drawn_from(top_p: float, kept: set[int]) -> None:
    logits = torch.tensor([[0.05, 0.5, 0.15, 0.3]]).log().repeat(50, 1)
    uniforms = torch.linspace(0, 0.9999, 50, dtype=torch.float64)
    tokens, _ = sample_tokens(logits, torch.ones(50), uniforms, (), torch.full((50,), top_p))
    assert set(tokens.tolist()) == kept

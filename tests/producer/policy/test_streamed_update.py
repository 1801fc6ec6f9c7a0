"""An update in minibatches equals that of the whole batch, and changes weights at its end alone."""

from dataclasses import replace
from uuid import UUID

import pytest
import torch

from producer.algorithms.settings import UpdateSettings
from producer.policy.learner import Trajectory, UpdateResult
from producer.policy.torch_policy import update_passes
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.network import Network
from tests.support.update_settings import changed

from .conftest import SETTINGS, Play, are_equal, make_request, make_screen, trajectory, weights

RELATIVE = 1e-6
BY_AGGREGATION = [
    changed(SETTINGS, loss_aggregation="sum"),
    changed(SETTINGS, loss_aggregation="token_mean"),
    changed(SETTINGS, loss_aggregation="sequence_mean"),
    changed(SETTINGS, loss_aggregation="sequence_sum", loss_fn="gspo"),
    changed(SETTINGS, loss_aggregation="token_mean", loss_fn="ppo", kl_penalty_coef=0.1,
            kl_in="loss", kl_estimator="k3"),
]  # fmt: skip


def gradients(network: Network) -> torch.Tensor:
    """Of the last optimiser step, flat."""
    return torch.cat(
        [
            parameter.grad.flatten()
            for parameter in network.trainable()
            if parameter.grad is not None
        ]
    )


def streamed(
    policy: InProcessPolicy,
    minibatches: list[list[Trajectory]],
    settings: UpdateSettings,
    *,
    per_step: int | None = None,
) -> dict[str, float]:
    update = policy.begin_update(settings, per_step or len(minibatches))
    for minibatch in minibatches:
        update.add(minibatch)
    return measured(update.finish())


def measured(result: UpdateResult) -> dict[str, float]:
    names = (
        "loss",
        "loss_per_token",
        "kl_sample_train_v1",
        "kl_policy_base",
        "entropy",
        "gradient_norm",
        "num_tokens",
        "num_measured_tokens",
    )
    return {name: getattr(result, name) or 0.0 for name in names}


@pytest.fixture
def groups(play: Play) -> list[list[Trajectory]]:
    """Three of different lengths; of the second one nothing is trained on."""
    advantages = [(1.0, -1.0), (0.0, 0.0), (0.75, -0.25)]
    return [
        [
            replace(trajectory(play(10 * num + at, 1 + (num + at) % 3), one), is_trained=num != 1)
            for at, one in enumerate(own)
        ]
        for num, own in enumerate(advantages)
    ]


@pytest.mark.parametrize(
    "settings", BY_AGGREGATION, ids=lambda item: f"{item.loss_aggregation}-{item.loss_fn}"
)
def test_minibatches_have_the_gradient_of_the_whole_batch(
    policy: InProcessPolicy,
    network: Network,
    groups: list[list[Trajectory]],
    settings: UpdateSettings,
) -> None:
    still = changed(settings, learning_rate=0.0)
    whole = measured(policy.update([item for group in groups for item in group], still))
    expected = gradients(network).double()
    found = streamed(policy, groups, still)
    difference = gradients(network).double() - expected
    assert expected.norm() > 0
    assert float(difference.norm() / expected.norm()) < RELATIVE
    assert found == pytest.approx(whole, rel=1e-5, abs=1e-6)


def test_the_policy_is_sampled_from_between_two_parts_with_the_weights_before(
    policy: InProcessPolicy,
    network: Network,
    groups: list[list[Trajectory]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(update_passes, "num_workers", lambda _device: 1)
    request = make_request(99, make_screen(5), temperature=0.7)
    before, expected = weights(network), policy.sample([request])[0]
    policy.forget(UUID(int=99))
    undisturbed = streamed(policy, groups, changed(SETTINGS, learning_rate=0.0))
    gradient = gradients(network)

    update = policy.begin_update(changed(SETTINGS, learning_rate=0.0), 3)
    assert not update.work(), "there is nothing to compute"
    num_parts = 0
    for group in groups:
        update.add(group)
        while update.work():
            num_parts += 1
            assert policy.sample([request])[0].tokens == expected.tokens
            policy.forget(UUID(int=99))
    assert num_parts >= 3
    assert are_equal(weights(network), before)
    assert measured(update.finish()) == undisturbed
    assert torch.equal(gradients(network), gradient)


def test_an_update_that_is_not_finished_changes_nothing(
    policy: InProcessPolicy, network: Network, groups: list[list[Trajectory]]
) -> None:
    before, version = weights(network), policy.version
    given_up = policy.begin_update(SETTINGS, 3)
    given_up.add(groups[0])
    while given_up.work():
        pass
    assert are_equal(weights(network), before)
    assert policy.version == version
    first = streamed(policy, groups, changed(SETTINGS, learning_rate=0.0))
    assert first == streamed(policy, groups, changed(SETTINGS, learning_rate=0.0))


def test_every_optimiser_step_has_its_minibatches_and_none_before_the_end(
    policy: InProcessPolicy, network: Network, groups: list[list[Trajectory]]
) -> None:
    halves = [groups[0][:1], groups[0][1:], groups[2][:1], groups[2][1:]]
    settings = changed(SETTINGS, num_substeps=2)
    before = weights(network)
    update = policy.begin_update(settings, 2)
    for halve in halves:
        update.add(halve)
    while update.work():
        pass
    assert are_equal(weights(network), before), "the second step waits for the first"
    found = update.finish()
    after = weights(network)
    again = InProcessPolicy(network, policy._codec)  # its optimiser is fresh
    with torch.no_grad():
        for parameter, value in zip(network.trainable(), before, strict=True):
            parameter.copy_(value)
    norms = []
    for step in (halves[:2], halves[2:]):
        whole = again.update([item for part in step for item in part], SETTINGS)
        norms.append(whole.gradient_norm)
    assert found.gradient_norm == pytest.approx(sum(norms) / 2, rel=1e-4)
    for own, other in zip(weights(network), after, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-3, atol=1e-4)


def test_without_anything_to_train_on_no_step_is_taken(
    policy: InProcessPolicy, network: Network, groups: list[list[Trajectory]]
) -> None:
    before = weights(network)
    found = streamed(policy, [[], groups[1], []], SETTINGS)
    assert are_equal(weights(network), before)
    assert (found["num_tokens"], found["loss"]) == (0, 0)
    assert found["num_measured_tokens"]

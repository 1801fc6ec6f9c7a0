"""PRIME in the learner: a second adapter learns the outcomes and gives the advantages of tokens."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from producer.algorithms.settings import PrimeSettings
from producer.errors import UsageError
from producer.policy.learner import LearnedAdvantages, RolloutOutcome, Trajectory, UpdateResult
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.loading import load_network
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.prime_advantage import PrimeAdvantage
from tests.support.checkpoints import write_checkpoint
from tests.support.update_settings import changed

from .conftest import SETTINGS, ClickOnly, are_equal, randomize_adapter, trajectory, weights
from .test_architectures import plain
from .test_text_policies import play
from .test_value_head import plain_forward

PRIME = changed(
    SETTINGS,
    loss_fn="ppo",
    learned_advantage=PrimeSettings(
        prime_beta=0.3,
        prime_process_coef=2.0,
        prime_outcome_coef=3.0,
        prime_learning_rate=0.02,
    ),
)
OUTCOMES = (
    RolloutOutcome(4, 1.0, is_right=True),
    RolloutOutcome(4, 0.0, is_right=False),
    RolloutOutcome(0, 0.5, is_right=True),
    RolloutOutcome(4, 0.25, is_right=False),
    RolloutOutcome(0, 0.0, is_right=False),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("qwen2")
    write_checkpoint(folder, "qwen2")
    return folder


def opened(folder: Path) -> tuple[Network, InProcessPolicy]:
    network = load_network(str(folder), lora_rank=4, seed=1)
    randomize_adapter(network)
    return network, InProcessPolicy(network, ClickOnly(), "Answer with one query.")


@pytest.fixture
def judged(folder: Path) -> list[Trajectory]:
    """Two groups, mixed; their `advantage` must not be read."""
    _, policy = opened(folder)
    return [
        replace(trajectory(play(policy, at, 1 + at % 2), 1e9), outcome=outcome)
        for at, outcome in enumerate(OUTCOMES, start=1)
    ]


def model_of(policy: InProcessPolicy) -> PrimeAdvantage:
    model = policy._learned[PrimeSettings]
    assert isinstance(model, PrimeAdvantage)
    return model


def model_weights(policy: InProcessPolicy) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in model_of(policy).parameters]


def prime_of(result: UpdateResult) -> LearnedAdvantages:
    assert result.learned is not None
    return result.learned


def measured(result: UpdateResult, name: str) -> float:
    value = prime_of(result).metrics[f"prime/{name}"]
    assert value is not None
    return value


def padded(rows: Sequence[Tensor]) -> Tensor:
    return torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True)


def plain_advantages(
    process: list[list[float]], attempts: Sequence[RolloutOutcome]
) -> tuple[list[float], list[Tensor]]:
    """(mean, of each token) by loops over lists, from the process rewards."""
    returns = []
    for at, own in enumerate(process):
        group = [i for i, one in enumerate(attempts) if one.group == attempts[at].group]
        others = len(group) - 1
        baseline = sum(sum(process[i]) / len(process[i]) for i in group) / others
        of_tokens = [reward * len(group) / others - baseline for reward in own]
        mean_of_others = sum(attempts[i].reward for i in group if i != at) / others
        of_outcome = attempts[at].reward - mean_of_others
        rewards = [2.0 * reward for reward in of_tokens]
        rewards[-1] += 3.0 * of_outcome
        returns.append([sum(rewards[start:]) for start in range(len(rewards))])
    every = torch.tensor([item for own in returns for item in own], dtype=torch.float64)
    mean, std = every.mean(), every.std()
    tokens = [(torch.tensor(own).double() - mean) / std for own in returns]
    return [float(own.mean()) for own in tokens], tokens


def test_an_update_is_that_of_a_plain_implementation_on_transformers_and_peft(
    folder: Path, judged: list[Trajectory], tmp_path: Path
) -> None:
    """Log-ratios, gradient of the cross-entropy, its step's rewards, advantages, policy's loss."""
    network, policy = opened(folder)
    policy.update(judged, PRIME)  # leaves the starting point, where every log-ratio is 0
    policy.save_checkpoint(tmp_path / "before")
    state = {name: tensor.clone() for name, tensor in network.adapted.state_dict().items()}
    result = policy.update(judged, changed(PRIME, temperature=0.7, prime_learning_rate=0.01))
    policy.save_checkpoint(tmp_path / "after")
    reference = plain(folder).eval()

    def reward_model(which: str) -> Any:
        base = plain(folder)
        return PeftModel.from_pretrained(base, tmp_path / which / "prime", is_trainable=True).eval()

    def ratios(model: Any) -> list[Tensor]:
        with torch.no_grad():
            expected = [plain_forward(reference, item)[1] for item in judged]
        found = [plain_forward(model, item)[1] for item in judged]
        return [own - other for own, other in zip(found, expected, strict=True)]

    before = reward_model("before")
    logits = torch.stack([0.3 * own.sum() for own in ratios(before)])
    labels = torch.tensor([float(outcome.is_right) for outcome in OUTCOMES])
    loss = binary_cross_entropy_with_logits(logits, labels)
    own_parameters = [parameter for parameter in before.parameters() if parameter.requires_grad]
    expected = torch.autograd.grad(loss, own_parameters)
    assert measured(result, "loss") == pytest.approx(float(loss.detach()), abs=1e-5)
    assert float(loss.detach()) != pytest.approx(0.6931, abs=1e-3)
    norm = torch.stack([item.norm() for item in expected]).norm()
    assert measured(result, "gradient_norm") == pytest.approx(float(norm), rel=1e-4)
    for parameter, gradient in zip(model_of(policy).parameters, expected, strict=True):
        assert parameter.grad is not None
        assert torch.allclose(parameter.grad, gradient, rtol=1e-4, atol=1e-5)
    assert measured(result, "accuracy") == pytest.approx(
        float(((logits > 0) == (labels > 0)).float().mean())
    )

    with torch.no_grad():
        process = [(0.3 * own).tolist() for own in ratios(reward_model("after"))]
    means, tokens = plain_advantages(process, OUTCOMES)
    assert prime_of(result).means == pytest.approx(means, abs=1e-5)
    every = [reward for own in process for reward in own]
    assert measured(result, "reward_mean") == pytest.approx(sum(every) / len(every), abs=1e-5)

    # The policy's update is the one with these advantages given.
    again_network, again = opened(folder)
    ours = {name: tensor for name, tensor in state.items() if ".prime." not in name}
    again_network.adapted.load_state_dict(ours)
    given = []
    for one, own in zip(judged, tokens, strict=True):
        lengths = [len(turn.tokens.completion_tokens) for turn in one.turns]
        parts = torch.split(own.float(), lengths)
        numbers = tuple(tuple(part.tolist()) for part in parts)
        given.append(replace(one, advantage=numbers))
    plain_settings = changed(PRIME, temperature=0.7, learned_advantage=None)
    same = again.update(given, plain_settings)
    assert same.learned is None
    assert result.loss == pytest.approx(same.loss, abs=1e-4)
    assert result.gradient_norm == pytest.approx(same.gradient_norm, rel=1e-4)


def test_the_cross_entropy_of_a_fixed_batch_falls_from_log_2(
    folder: Path, judged: list[Trajectory]
) -> None:
    _, policy = opened(folder)
    results = [policy.update(judged, PRIME) for _ in range(4)]
    losses = [measured(result, "loss") for result in results]
    assert losses[0] == pytest.approx(0.6931472)
    assert losses == sorted(losses, reverse=True)
    assert losses[3] < 0.8 * losses[0]
    # At the start every sum is 0: what was wrong is told, what was right is not.
    assert measured(results[0], "accuracy") == pytest.approx(3 / 5)
    assert measured(results[3], "accuracy") == 1.0
    # The first rewards are of the model after its step.
    assert measured(results[0], "reward_mean") != 0.0


def test_without_a_step_the_process_rewards_are_0_and_rloo_of_the_outcomes_is_left(
    folder: Path, judged: list[Trajectory]
) -> None:
    _, policy = opened(folder)
    result = policy.update(judged, changed(PRIME, prime_learning_rate=0.0))
    assert measured(result, "reward_mean") == 0.0
    zeros = [[0.0] * item.num_tokens for item in judged]
    assert prime_of(result).means == pytest.approx(plain_advantages(zeros, OUTCOMES)[0], abs=1e-5)


def test_beside_the_reward_model_the_policy_has_the_bits_of_one_without(
    folder: Path, judged: list[Trajectory]
) -> None:
    network, policy = opened(folder)
    policy.update(judged, changed(PRIME, learning_rate=0.0))
    other_network, other = opened(folder)
    given = [replace(one, advantage=0.5 * at) for at, one in enumerate(judged)]
    other.update(given, changed(SETTINGS, learning_rate=0.0))
    assert are_equal(weights(network), weights(other_network))
    assert [item.tokens for item in play(policy, 9)] == [item.tokens for item in play(other, 9)]
    assert len(weights(network)) == len(model_weights(policy))


def test_a_policy_that_moves_leaves_the_reward_model_and_its_reference_alone(
    folder: Path, judged: list[Trajectory]
) -> None:
    losses, models = [], []
    for rate in (0.0, 0.1):
        _, policy = opened(folder)
        for _ in range(2):
            result = policy.update(judged, changed(PRIME, learning_rate=rate))
        losses.append(measured(result, "loss"))
        models.append(model_weights(policy))
    assert losses[0] == losses[1]
    assert are_equal(*models)


def test_a_checkpoint_holds_both_adapters_for_plain_peft_and_the_policys_is_as_without(
    folder: Path, judged: list[Trajectory], tmp_path: Path
) -> None:
    network, policy = opened(folder)
    policy.update(judged, PRIME)
    policy.save_checkpoint(tmp_path)
    assert sorted(load_file(tmp_path / "adapter_model.safetensors")) == sorted(
        load_file(tmp_path / "prime" / "adapter_model.safetensors")
    )
    for own, kept in ((tmp_path, weights(network)), (tmp_path / "prime", model_weights(policy))):
        theirs = PeftModel.from_pretrained(plain(folder), own, is_trainable=True)
        loaded = [
            parameter.detach() for parameter in theirs.parameters() if parameter.requires_grad
        ]
        assert are_equal(loaded, kept)


def test_the_policys_dropout_is_not_its_own(folder: Path, judged: list[Trajectory]) -> None:
    models = []
    for dropout in (0.0, 0.5):
        network = load_network(str(folder), lora_rank=4, seed=1, lora_dropout=dropout)
        policy = InProcessPolicy(network, ClickOnly(), "Answer with one query.")
        policy.update(judged, PRIME)
        policy.update(judged, PRIME)
        models.append(model_weights(policy))
    assert are_equal(*models)


def test_its_gradient_is_clipped_on_its_own(folder: Path, judged: list[Trajectory]) -> None:
    def stepped(bound: float | None) -> tuple[float, float]:
        _, policy = opened(folder)
        result = policy.update(judged, changed(PRIME, max_gradient_norm=bound))
        gradients = [
            parameter.grad.norm()
            for parameter in model_of(policy).parameters
            if parameter.grad is not None
        ]
        return measured(result, "gradient_norm"), float(torch.stack(gradients).norm())

    free, same = stepped(None)
    assert free == pytest.approx(same)
    reported, clipped = stepped(free / 10)
    assert reported == free
    assert clipped == pytest.approx(free / 10, rel=1e-3)


def test_a_batch_with_nothing_to_train_on_changes_no_reward_model(
    folder: Path, judged: list[Trajectory]
) -> None:
    _, policy = opened(folder)
    measured = [replace(item, is_trained=False) for item in judged]
    assert policy.update(measured, PRIME).learned is None
    policy.update(judged, PRIME)
    before = model_weights(policy)
    assert policy.update([replace(judged[0], turns=())], PRIME).learned is None
    assert are_equal(before, model_weights(policy))


def test_a_bonus_of_the_policy_is_none_of_the_reward_models(
    folder: Path, judged: list[Trajectory]
) -> None:
    models = []
    for coef in (0.0, 0.5):
        _, policy = opened(folder)
        policy.update(judged, changed(PRIME, entropy_coef=coef, learning_rate=0.0))
        models.append(model_weights(policy))
    assert are_equal(*models)


def test_a_network_of_fused_experts_is_refused_by_name(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, "qwen3_vl_moe")
    network = load_network(str(tmp_path), lora_rank=2, seed=1)
    with pytest.raises(UsageError, match="prime needs a second adapter"):
        PrimeAdvantage(network, 0)

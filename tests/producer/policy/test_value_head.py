"""Advantages of tokens: given, or from rewards of tokens and the value head (gae)."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import cast

import pytest
import torch
from torch import Tensor, nn

from producer.algorithms.settings import GaeSettings, UpdateSettings
from producer.policy.learner import RolloutOutcome, TokenNumbers, Trajectory, UpdateResult
from producer.policy.torch_policy.gae_advantage import GaeAdvantage
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.loading import load_network
from producer.policy.torch_policy.network import Network
from tests.oracles import verl_core
from tests.support.checkpoints import write_checkpoint
from tests.support.turns import trained_turn
from tests.support.update_settings import changed

from .conftest import (
    SETTINGS,
    ClickOnly,
    are_equal,
    randomize_adapter,
    trajectory,
    weights,
)
from .test_architectures import plain
from .test_text_policies import play as play_text

GAE = changed(
    SETTINGS,
    loss_fn="ppo",
    learned_advantage=GaeSettings(gae_gamma=0.97, gae_lambda=0.9, value_learning_rate=0.1),
)


def with_rewards(one: Trajectory, rewards: TokenNumbers) -> Trajectory:
    """With these rewards of tokens; its `advantage` must not be read."""
    return replace(one, advantage=1e9, outcome=replace(one.outcome, token_rewards=rewards))


def rewarded(one: Trajectory, seed: int = 0) -> Trajectory:
    """With a random reward for each token."""
    generator = torch.Generator().manual_seed(seed)
    rewards = tuple(
        tuple(torch.randn(len(turn.tokens.completion_tokens), generator=generator).tolist())
        for turn in one.turns
    )
    return with_rewards(one, rewards)


@pytest.fixture
def rewarded_batch(batch: list[Trajectory]) -> list[Trajectory]:
    return [rewarded(one, seed) for seed, one in enumerate(batch)]


def opened(base_folder: Path) -> tuple[Network, InProcessPolicy]:
    network = load_network(str(base_folder), lora_rank=4, seed=1)
    randomize_adapter(network)
    return network, InProcessPolicy(network, ClickOnly())


def head_of(policy: InProcessPolicy) -> GaeAdvantage:
    head = policy._learned[GaeSettings]
    assert isinstance(head, GaeAdvantage)
    return head


def measured(result: UpdateResult, name: str) -> float:
    """A metric of the value head."""
    assert result.learned is not None
    value = result.learned.metrics[f"optim/value_{name}"]
    assert value is not None
    return value


def means(result: UpdateResult) -> tuple[float | None, ...]:
    assert result.learned is not None
    return result.learned.means


def head_weights(policy: InProcessPolicy) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in head_of(policy).joint_parameters]


def flat(numbers: float | TokenNumbers) -> list[float]:
    assert isinstance(numbers, tuple)
    return [number for own in numbers for number in own]


def plain_forward(theirs: nn.Module, one: Trajectory) -> tuple[Tensor, Tensor]:
    """(hidden_ND, logprobs_N) of the completion tokens under plain transformers and peft."""
    tokens: list[int] = []
    at: list[int] = []
    for turn in one.turns:
        tokens += turn.tokens.prompt_tokens
        at += range(len(tokens), len(tokens) + len(turn.tokens.completion_tokens))
        tokens += turn.tokens.completion_tokens
    output = theirs(input_ids=torch.tensor([tokens]), output_hidden_states=True)
    before = torch.tensor(at) - 1
    logprobs = torch.log_softmax(output.logits[0, before], dim=-1)
    return output.hidden_states[-1][0, before], logprobs.gather(
        1, torch.tensor(tokens)[at][:, None]
    )[:, 0]


def test_advantages_of_tokens_that_are_all_equal_are_the_advantage_of_the_rollout(
    base_folder: Path, batch: list[Trajectory]
) -> None:
    after = []
    for by_token in (False, True):
        network, policy = opened(base_folder)
        given = [
            replace(
                item,
                advantage=tuple(
                    (cast("float", item.advantage),) * len(turn.tokens.completion_tokens)
                    for turn in item.turns
                ),
            )
            if by_token
            else item
            for item in batch
        ]
        policy.update(given, changed(SETTINGS, num_substeps=2))
        after.append(weights(network))
    assert are_equal(after[0], after[1])


def test_each_token_is_trained_with_its_own_advantage(
    policy: InProcessPolicy, batch: list[Trajectory]
) -> None:
    """On policy every ratio is 1: the loss is minus the sum of all advantages."""
    numbers = iter(range(1, 1000))
    given = [
        replace(
            item,
            advantage=tuple(
                tuple(float(next(numbers)) for _ in turn.tokens.completion_tokens)
                for turn in item.turns
            ),
        )
        for item in batch
    ]
    total = sum(sum(flat(item.advantage)) for item in given)
    result = policy.update(given, changed(SETTINGS, learning_rate=0.0))
    assert result.loss == pytest.approx(-total, rel=1e-4)
    assert result.learned is None
    only_last = [
        replace(
            item,
            advantage=tuple(
                tuple(
                    float(
                        (turn, at) == (len(item.turns) - 1, len(turns.tokens.completion_tokens) - 1)
                    )
                    for at in range(len(turns.tokens.completion_tokens))
                )
                for turn, turns in enumerate(item.turns)
            ),
        )
        for item in batch
    ]
    assert policy.update(only_last, changed(SETTINGS, learning_rate=0.0)).loss == pytest.approx(
        -len(batch), rel=1e-4
    )


@pytest.mark.parametrize("coef", [0.0, 0.7])
def test_an_update_with_values_is_verl_s_on_plain_transformers_and_peft(
    tmp_path: Path, coef: float
) -> None:
    """Values, GAE, ppo, the clipped value loss and both gradients, after the policy has moved."""
    from peft import PeftModel

    verl = verl_core.load()
    write_checkpoint(tmp_path / "base", "qwen3")
    network = load_network(str(tmp_path / "base"), lora_rank=4, seed=1)
    randomize_adapter(network)
    policy = InProcessPolicy(network, ClickOnly(), "Answer with one query.")
    batch = [
        rewarded(trajectory(play_text(policy, episode, 1 + episode), 0.0), seed=episode)
        for episode in (1, 2)
    ]
    # The head's values and the ratios leave their starting points, so that clipping is in force.
    policy.update(batch, changed(GAE, learning_rate=0.02))
    policy.save_checkpoint(tmp_path / "checkpoint")
    theirs = PeftModel.from_pretrained(
        plain(tmp_path / "base"), tmp_path / "checkpoint", is_trainable=True
    ).eval()
    head = head_of(policy)
    settings = changed(
        GAE,
        learning_rate=0.0,
        value_learning_rate=0.0,
        value_coef=coef,
        loss_aggregation="token_mean",
    )
    rows = [plain_forward(theirs, item) for item in batch]
    weight, bias = head.joint_parameters
    values = [(hidden @ weight.T)[:, 0] + bias for hidden, _ in rows]
    frozen = [(hidden.detach() @ weight.T)[:, 0] + bias for hidden, _ in rows]

    def pad(tensors: Sequence[Tensor]) -> Tensor:
        return torch.nn.utils.rnn.pad_sequence(list(tensors), batch_first=True)

    mask = pad([torch.ones(len(own)) for own in values])
    old = pad(
        [
            torch.tensor([n for t in item.turns for n in t.tokens.completion_logprobs])
            for item in batch
        ]
    )
    rewards = pad([torch.tensor(item.flat_rewards) for item in batch])
    advantages, returns = verl.compute_gae_advantage_return(
        rewards, pad(values).detach(), mask, gamma=0.97, lam=0.9
    )
    ratio = torch.exp(pad([logprobs for _, logprobs in rows]) - old)
    surrogate = torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
    policy_loss = -(surrogate * mask).sum() / mask.sum()
    assert bool((((ratio - 1).abs() > 0.2) & (mask > 0)).any())

    def value_loss(predicted: Sequence[Tensor]) -> Tensor:
        loss: Tensor = verl.compute_value_loss(
            pad(predicted), returns, pad(values).detach(), mask, 0.5
        )[0]
        return loss

    adapter = [parameter for parameter in theirs.parameters() if parameter.requires_grad]
    expected = torch.autograd.grad(
        policy_loss + coef * value_loss(values), adapter, retain_graph=True
    )
    of_head = torch.autograd.grad(value_loss(frozen), [weight, bias])
    result = policy.update(batch, settings)
    for parameter, gradient in zip(network.trainable(), expected, strict=True):
        assert parameter.grad is not None
        assert torch.allclose(parameter.grad, gradient, rtol=1e-4, atol=1e-5)
    for parameter, gradient in zip(head.joint_parameters, of_head, strict=True):
        assert parameter.grad is not None
        assert torch.allclose(parameter.grad, gradient, rtol=1e-5, atol=1e-5)
    assert result.loss == pytest.approx(float(policy_loss.detach()), abs=1e-5)
    assert measured(result, "loss") == pytest.approx(float(value_loss(values).detach()), rel=1e-4)
    expected_means = [
        float(own[: int(length)].mean())
        for own, length in zip(advantages, mask.sum(dim=1), strict=True)
    ]
    assert means(result) == pytest.approx(expected_means, abs=1e-5)
    assert measured(result, "mean") == pytest.approx(
        float((pad(frozen) * mask).detach().sum() / mask.sum()), rel=1e-4
    )


def test_a_value_counts_only_so_far_from_the_one_before_the_update(
    base_folder: Path, rewarded_batch: list[Trajectory]
) -> None:
    """The second substep's values have left the first's: with a narrow bound they are clipped."""
    fractions = []
    for clip in (math.inf, 1e-6):
        _, policy = opened(base_folder)
        result = policy.update(
            rewarded_batch, changed(GAE, num_substeps=4, value_clip=clip, value_learning_rate=0.5)
        )
        fractions.append(measured(result, "clip_fraction"))
    assert fractions[0] == 0.0
    assert 0.1 < fractions[1] < 1.0


def test_the_first_values_are_0_so_the_advantages_are_whitened_rewards_to_go(
    policy: InProcessPolicy, batch: list[Trajectory]
) -> None:
    given = [rewarded(one, seed) for seed, one in enumerate(batch)]
    result = policy.update(given, changed(GAE, gae_gamma=1.0, gae_lambda=1.0))
    to_go = [list(accumulate(reversed(item.flat_rewards))) for item in given]
    every = torch.tensor([number for own in to_go for number in own]).double()
    mean, std = every.mean(), every.std()
    expected = [float((sum(own) / len(own) - mean) / std) for own in to_go]
    assert means(result) == pytest.approx(expected, abs=1e-5)
    assert measured(result, "mean") == 0.0
    assert measured(result, "explained_variance") == pytest.approx(0.0)


def test_rewards_flow_back_over_a_prompt_that_was_cut(
    policy: InProcessPolicy, batch: list[Trajectory]
) -> None:
    """A trajectory of two sequences is one row: the last token's reward reaches the first turn."""
    whole = batch[1]
    assert len(whole.turns) > 1
    first = whole.turns[0].tokens
    cut = trained_turn(
        whole.turns[1].screenshot,
        replace(
            whole.turns[1].tokens,
            prompt_extends=None,
            prompt_tokens=first.prompt_tokens,
            num_prompt_images=1,
        ),
    )
    zeros = [(0.0,) * len(turn.tokens.completion_tokens) for turn in (whole.turns[0], cut)]
    one = replace(whole, turns=(whole.turns[0], cut), outcome=RolloutOutcome(0, 1.0, is_right=True))
    none = with_rewards(one, tuple(zeros))
    result = policy.update([one, none], changed(GAE, gae_gamma=1.0, gae_lambda=1.0))
    # Every token of `one` has return 1, every one of `none` 0: whitened, these are opposite.
    high, low = means(result)
    assert high is not None
    assert low is not None
    num_tokens = 2 * one.num_tokens
    assert high == pytest.approx(0.5 / (0.25 * num_tokens / (num_tokens - 1)) ** 0.5, rel=1e-5)
    assert low == pytest.approx(-high)


def test_a_value_head_learns_the_returns_and_leaves_the_policy_alone(
    base_folder: Path, rewarded_batch: list[Trajectory]
) -> None:
    network, policy = opened(base_folder)
    before = weights(network)
    settings = changed(GAE, learning_rate=0.0, value_clip=math.inf, gae_lambda=1.0)
    losses = []
    for _ in range(30):
        result = policy.update(rewarded_batch, settings)
        losses.append(measured(result, "loss"))
    assert losses[-1] < 0.7 * losses[0]
    assert measured(result, "explained_variance") > 0.3
    assert are_equal(before, weights(network))


def test_a_value_coefficient_trains_the_adapter_on_the_values_too(
    base_folder: Path, rewarded_batch: list[Trajectory]
) -> None:
    norms = []
    for coef in (0.0, 10.0):
        _, policy = opened(base_folder)
        policy.update(rewarded_batch, GAE)
        frozen = changed(GAE, learning_rate=0.0, value_coef=coef)
        result = policy.update(rewarded_batch, frozen)
        norms.append(result.gradient_norm)
    assert norms[0] != pytest.approx(norms[1], rel=1e-3)


def test_one_token_alone_has_advantage_0(policy: InProcessPolicy, batch: list[Trajectory]) -> None:
    turn = batch[0].turns[0]
    tokens = replace(
        turn.tokens,
        completion_tokens=turn.tokens.completion_tokens[:1],
        completion_logprobs=turn.tokens.completion_logprobs[:1],
    )
    one = replace(
        batch[0],
        turns=(trained_turn(turn.screenshot, tokens),),
        outcome=RolloutOutcome(0, 1.0, is_right=True),
    )
    result = policy.update([one], GAE)
    assert result.learned is not None
    assert (result.learned.means, result.loss) == ((0.0,), 0.0)
    assert result.learned.metrics["optim/value_explained_variance"] is None


def test_a_batch_with_nothing_to_train_on_trains_no_head(
    policy: InProcessPolicy, batch: list[Trajectory]
) -> None:
    result = policy.update([replace(rewarded(item), is_trained=False) for item in batch], GAE)
    assert result.learned is None
    empty = replace(batch[0], turns=())
    assert policy.update([empty], GAE).learned is None


def test_gradients_of_the_head_are_clipped_on_their_own(
    base_folder: Path, rewarded_batch: list[Trajectory]
) -> None:
    def value_step(bound: float | None) -> tuple[float, float]:
        _, policy = opened(base_folder)
        settings: UpdateSettings = changed(GAE, max_gradient_norm=bound, learning_rate=0.0)
        result = policy.update(rewarded_batch, settings)
        clipped = torch.stack(
            [p.grad.norm() for p in head_of(policy).joint_parameters if p.grad is not None]
        )
        return measured(result, "gradient_norm"), float(clipped.norm())

    free, same = value_step(None)
    assert free == pytest.approx(same)
    reported, clipped = value_step(free / 10)
    assert reported == free
    assert clipped == pytest.approx(free / 10, rel=1e-3)

"""Hand-computed advantages."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from producer.algorithms.advantages import (
    ADVANTAGES,
    Rewards,
    group_advantages,
    has_signal,
    mean_centered_by_std,
)

rewards = st.lists(st.floats(-10, 10), min_size=1, max_size=16)


def test_an_advantage_is_the_reward_minus_the_group_s_mean() -> None:
    assert group_advantages([1.0, 0.0, 0.0, 1.0]) == [0.5, -0.5, -0.5, 0.5]
    assert group_advantages([3.0, 0.0]) == [1.5, -1.5]


def test_advantages_are_divided_by_the_standard_deviation_on_request() -> None:
    # mean 0.25, variance (0.5625 + 3 * 0.0625) / 4 = 0.1875, sd 0.433013; 0.75 / 0.483013 and -0.25
    # / 0.483013
    assert group_advantages([1.0, 0.0, 0.0, 0.0], divide_by_std=True) == pytest.approx(
        [1.552754, -0.517585, -0.517585, -0.517585], abs=1e-6
    )


def test_a_group_of_one_reward_has_no_signal_and_no_advantage() -> None:
    assert not has_signal([1.0, 1.0])
    assert has_signal([1.0, 0.98])
    assert group_advantages([0.7, 0.7], divide_by_std=True) == [0.0, 0.0]
    assert group_advantages([]) == []


@given(rewards, st.booleans(), st.floats(-5, 5))
def test_advantages_sum_to_zero_and_ignore_what_all_rewards_share(
    rewards_G: list[float], by_std: bool, shift: float
) -> None:
    advantages = group_advantages(rewards_G, divide_by_std=by_std)
    assert sum(advantages) == pytest.approx(0.0, abs=1e-6)
    shifted = group_advantages([reward + shift for reward in rewards_G], divide_by_std=by_std)
    assert shifted == pytest.approx(advantages, abs=1e-6)


OF_ROLLOUTS: dict[str, Callable[[Rewards], Any]] = {
    name: advantage.compute for name, advantage in ADVANTAGES.items() if advantage.learned is None
}
REWARDS = Rewards(
    rewards_B=[1.0, 0.0, 0.0, 1.0, 0.0, 4.0],
    groups_B=[0, 0, 1, 0, 1, 0],
    num_tokens_B=[1, 2, 5, 3, 5, 4],
    greedy_rewards_B=[1.0, 1.0, 0.0, 1.0, 0.0, 1.0],
    is_right_B=[True, False, True, False, False, True],
)
"""Group 0: 1, 0, 1, 4 with mean 1.5 and squares 0.25 + 2.25 + 0.25 + 6.25 = 9; group 1: 0, 0."""


def test_advantages_by_hand() -> None:
    std = 3.0**0.5 + 1e-6  # of the sample: sqrt(9 / 3)
    opo = (1 * 1 + 3 * 1 + 4 * 4) / 10
    # Mean over 20 tokens 20 / 20 = 1; squares 0 + 2 + 5 + 0 + 5 + 36 = 48
    whitened = (48 / 19 + 1e-8) ** 0.5
    # Centred: -0.5, -1.5, 0, -0.5, 0, 2.5; mean (-0.5 - 3 - 1.5 + 10) / 20 = 0.25; squares
    # 0.5625 + 2 * 3.0625 + 5 * 0.0625 + 3 * 0.5625 + 5 * 0.0625 + 4 * 5.0625
    baseline = (29.25 / 19 + 1e-8) ** 0.5
    expected = {
        "mean_centered": [-0.5, -1.5, 0, -0.5, 0, 2.5],
        "grpo": [-0.5 / std, -1.5 / std, 0, -0.5 / std, 0, 2.5 / std],
        "dr_grpo": [-0.5, -1.5, 0, -0.5, 0, 2.5],
        "reinforce": [1, 0, 0, 1, 0, 4],
        # 4 / 3 of it
        "rloo": [-2 / 3, -2, 0, -2 / 3, 0, 10 / 3],
        "reinforce_plus_plus": [value / whitened for value in (0, -1, -1, 0, -1, 3)],
        "reinforce_plus_plus_baseline": [
            value / baseline for value in (-0.75, -1.75, -0.25, -0.75, -0.25, 2.25)
        ],
        "remax": [0, -1, 0, 0, 0, 3],
        "opo": [1 - opo, -opo, 0, 1 - opo, 0, 4 - opo],
        # 6 rollouts, 3 of them not 0
        "gpg": [-1.0, -3.0, 0, -1.0, 0, 5.0],
        "grpo_passk": [0, 0, 0, 0, 0, 3 / std],
        "grpo_passk_no_std": [0, 0, 0, 0, 0, 3.0],
        "rejection": [1, 0, 1, 0, 0, 1],
    }
    assert set(expected) == set(OF_ROLLOUTS)
    for name, advantages_of in OF_ROLLOUTS.items():
        assert advantages_of(REWARDS) == pytest.approx(expected[name], abs=1e-9), name
    assert mean_centered_by_std(REWARDS)[5] == pytest.approx(2.5 / (1.5 + 0.05))


def test_a_rollout_alone_in_its_group_has_nothing_to_be_compared_with() -> None:
    alone = Rewards([0.7], [0], [3])
    assert ADVANTAGES["mean_centered"].compute(alone) == [0.0]
    # verl's convention: no baseline, so the reward itself
    for name in ("grpo", "dr_grpo", "rloo", "opo"):
        assert ADVANTAGES[name].compute(alone) == pytest.approx([0.7], abs=1e-6)
    with pytest.raises(ValueError, match="at least 2"):
        ADVANTAGES["grpo_passk"].compute(alone)


def test_remax_without_a_greedy_rollout_is_refused() -> None:
    with pytest.raises(ValueError, match="greedy"):
        ADVANTAGES["remax"].compute(Rewards([1.0], [0], [1]))


def test_a_scripted_policy_without_tokens_has_finite_advantages() -> None:
    rewards = Rewards([1.0, 0.0], [0, 0], [0, 0], [0.0, 0.0], [True, False])
    for name, advantages_of in OF_ROLLOUTS.items():
        assert all(abs(value) < 10 for value in advantages_of(rewards)), name


def test_advantages_with_weights_of_their_own_are_known_after_the_update() -> None:
    learned = [name for name, advantage in ADVANTAGES.items() if advantage.learned is not None]
    assert learned == ["gae", "prime"]
    assert all(ADVANTAGES[name].compute(REWARDS) == [None] * 6 for name in learned)


@given(st.permutations(range(6)))
def test_the_order_of_rollouts_does_not_matter(order: list[int]) -> None:
    def shuffled(values: Sequence[float]) -> list[float]:
        return [values[at] for at in order]

    greedy, is_right = REWARDS.greedy_rewards_B, REWARDS.is_right_B
    assert greedy is not None
    assert is_right is not None
    permuted = Rewards(
        shuffled(REWARDS.rewards_B),
        [REWARDS.groups_B[at] for at in order],
        [REWARDS.num_tokens_B[at] for at in order],
        shuffled(greedy),
        [is_right[at] for at in order],
    )
    for name, advantages_of in OF_ROLLOUTS.items():
        assert advantages_of(permuted) == pytest.approx(shuffled(advantages_of(REWARDS))), name

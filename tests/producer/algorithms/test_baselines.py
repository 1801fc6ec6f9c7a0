"""REINFORCE and its baselines, by hand."""

import pytest

from producer.algorithms.advantages import ADVANTAGES, Rewards, baselines, moved

REWARDS = Rewards(
    rewards_B=[1.0, -0.1, -0.3, 1.0], groups_B=[0, 0, 1, 1], num_tokens_B=[5, 9, 7, 2]
)


def test_reinforce_is_the_reward_itself_even_alone_in_a_group() -> None:
    assert ADVANTAGES["reinforce"].compute(REWARDS) == [1.0, -0.1, -0.3, 1.0]
    assert ADVANTAGES["reinforce"].compute(Rewards([-0.1], [0], [3])) == [-0.1]


def test_a_baseline_is_nothing_the_moving_average_or_the_group_s_mean() -> None:
    assert baselines(REWARDS, "none", moving=0.7) == [0, 0, 0, 0]
    assert baselines(REWARDS, "moving", moving=0.7) == [0.7] * 4
    assert baselines(REWARDS, "group", moving=0.7) == pytest.approx([0.45, 0.45, 0.35, 0.35])


def test_the_moving_average_begins_at_0_and_moves_by_each_step_s_mean() -> None:
    first = moved(0.0, [1.0, 0.0], 0.9)
    assert first == pytest.approx(0.05)
    assert moved(first, [-0.3], 0.9) == pytest.approx(0.015)
    assert moved(0.4, [], 0.9) == 0.4

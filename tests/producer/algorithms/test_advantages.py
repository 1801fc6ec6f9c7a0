"""Hand-computed advantages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from producer.algorithms.advantages import group_advantages, has_signal

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

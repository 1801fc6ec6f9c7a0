"""Clustered standard errors: worked out by hand, and against a plain sandwich estimator."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.clustered_errors import (
    Difference,
    TaskCount,
    clustered_standard_error,
    paired_difference,
)

COUNTS = st.dictionaries(
    st.sampled_from("abcdefgh"),
    st.integers(1, 6).flatmap(lambda n: st.builds(TaskCount, st.integers(0, n), st.just(n))),
    min_size=2,
)


def sandwich(episodes: list[tuple[str, float]]) -> float:
    """The error of the intercept in a regression on a constant, clustered by the first member."""
    names = sorted({name for name, _ in episodes})
    design = np.ones((len(episodes), 1))
    outcome = np.array([value for _, value in episodes])
    bread = np.linalg.inv(design.T @ design)
    residuals = outcome - design @ (bread @ design.T @ outcome)
    of = np.array([names.index(name) for name, _ in episodes])
    scores = np.array([design[of == g].T @ residuals[of == g] for g in range(len(names))])
    factor = len(names) / (len(names) - 1)
    return float(np.sqrt((bread @ (factor * scores.T @ scores) @ bread)[0, 0]))


def episodes_of(counts: dict[str, TaskCount]) -> list[tuple[str, float]]:
    return [
        (name, float(number < count.successes))
        for name, count in counts.items()
        for number in range(count.episodes)
    ]


def test_two_tasks_that_are_always_and_never_solved() -> None:
    # The rate is 0.5; residuals 0.25 and -0.25; sqrt(2 / 1 * (0.0625 + 0.0625)) = 0.5.
    counts = {"a": TaskCount(10, 10), "b": TaskCount(0, 10)}
    assert clustered_standard_error(counts) == pytest.approx(0.5)


def test_more_episodes_of_the_same_tasks_do_not_make_the_error_smaller() -> None:
    few = {"a": TaskCount(1, 1), "b": TaskCount(0, 1), "c": TaskCount(1, 1)}
    many = {name: TaskCount(100 * count.successes, 100) for name, count in few.items()}
    assert clustered_standard_error(many) == pytest.approx(clustered_standard_error(few))


def test_with_one_episode_of_each_task_it_is_the_usual_error_of_a_mean() -> None:
    counts = {
        "a": TaskCount(1, 1),
        "b": TaskCount(0, 1),
        "c": TaskCount(0, 1),
        "d": TaskCount(0, 1),
    }
    # The sample's standard deviation, sqrt(0.75 / 3) = 0.5, over sqrt(4).
    assert clustered_standard_error(counts) == pytest.approx(0.25)


def test_a_single_task_has_the_error_over_its_episodes() -> None:
    assert clustered_standard_error({"a": TaskCount(1, 4)}) == pytest.approx(math.sqrt(3) / 8)


def test_nothing_has_no_error() -> None:
    assert clustered_standard_error({}) == 0


@given(COUNTS)
def test_it_agrees_with_the_sandwich_estimator(counts: dict[str, TaskCount]) -> None:
    expected = sandwich(episodes_of(counts))
    assert clustered_standard_error(counts) == pytest.approx(expected, abs=1e-9)


def test_a_difference_is_paired_by_task() -> None:
    before = {"easy": TaskCount(8, 10), "hard": TaskCount(0, 10)}
    after = {"easy": TaskCount(10, 10), "hard": TaskCount(2, 10)}
    found = paired_difference(before, after)
    # Both tasks gain 0.2, so the error is 0, although the rates differ by 0.8 between tasks.
    assert found is not None
    assert found.gain == pytest.approx(0.2)
    assert found.standard_error == pytest.approx(0.0)
    assert found.num_tasks == 2


def test_a_gain_of_one_task_alone_is_within_two_errors() -> None:
    before = {"a": TaskCount(0, 4), "b": TaskCount(2, 4)}
    after = {"a": TaskCount(4, 4), "b": TaskCount(2, 4)}
    found = paired_difference(before, after)
    # Gains 1 and 0, mean 0.5: residuals 0.25 and -0.25, error sqrt(2 * 0.125) = 0.5.
    assert found is not None
    assert found == pytest.approx((0.5, 0.5, 2))


@pytest.mark.parametrize("num_tasks", [1, 5, 6])
def test_no_conclusion_is_drawn_from_fewer_than_six_tasks(num_tasks: int) -> None:
    before = {str(task): TaskCount(0, 4) for task in range(num_tasks)}
    after = {str(task): TaskCount(4, 4) for task in range(num_tasks)}
    found = paired_difference(before, after)
    assert found is not None
    assert found == (1, 0, num_tasks)
    assert found.is_significant is (num_tasks == 6)


def test_a_gain_within_two_errors_is_not_significant() -> None:
    assert not Difference(0.2, 0.1, 6).is_significant
    assert Difference(-0.21, 0.1, 6).is_significant


def test_only_tasks_of_both_evaluations_are_compared() -> None:
    before = {"a": TaskCount(0, 2), "gone": TaskCount(2, 2)}
    after = {"a": TaskCount(1, 2), "new": TaskCount(2, 2)}
    found = paired_difference(before, after)
    assert found is not None
    # One task: sqrt(0 + 0.25 / 2).
    assert found == pytest.approx((0.5, math.sqrt(0.125), 1))
    assert paired_difference(before, {"new": TaskCount(1, 1)}) is None


@given(COUNTS)
def test_nothing_differs_from_itself(counts: dict[str, TaskCount]) -> None:
    found = paired_difference(counts, counts)
    assert found is not None
    assert found.gain == 0
    assert found.standard_error == 0
    assert not found.is_significant

"""The area under the ROC curve."""

import pytest

from producer.supervised.held_out import area_under_curve


@pytest.mark.parametrize(
    ("scores", "is_positive", "expected"),
    [
        # Pairs (positive, negative) in the right order, of all pairs.
        ([0.1, 0.4, 0.35, 0.8], [False, False, True, True], 3 / 4),
        ([0.9, 0.1], [True, False], 1.0),
        ([0.1, 0.9], [True, False], 0.0),
        # A tie counts one half: (0.5, 0.5) and (0.5, 0.1) of two pairs.
        ([0.5, 0.5, 0.1], [True, False, False], 0.75),
        ([0.3, 0.3, 0.3, 0.3], [True, False, True, False], 0.5),
    ],
)
def test_it_is_the_share_of_pairs_in_the_right_order(
    scores: list[float], is_positive: list[bool], expected: float
) -> None:
    assert area_under_curve(scores, is_positive) == pytest.approx(expected, abs=1e-12)


def test_one_class_has_none() -> None:
    assert area_under_curve([0.1, 0.2], [True, True]) is None
    assert area_under_curve([0.1, 0.2], [False, False]) is None
    assert area_under_curve([], []) is None

"""Figures on held-out items: the area under the ROC curve, and the same on any machine."""

import pytest
from transformers import PreTrainedModel

from producer.supervised.held_out import Figures, area_under_curve, evaluate
from producer.supervised.objective import CrossEntropy
from tests.producer.supervised.conftest import make_examples

EXAMPLES = make_examples(10)


@pytest.mark.parametrize(
    ("scored", "expected"),
    [
        # Pairs (positive, negative) in the right order, of all pairs.
        ([(0.1, False), (0.4, False), (0.35, True), (0.8, True)], 3 / 4),
        ([(0.9, True), (0.1, False)], 1.0),
        ([(0.1, True), (0.9, False)], 0.0),
        # A tie counts one half: (0.5, 0.5) and (0.5, 0.1) of two pairs.
        ([(0.5, True), (0.5, False), (0.1, False)], 0.75),
        ([(0.3, True), (0.3, False), (0.3, True), (0.3, False)], 0.5),
        # Of one class there are no pairs.
        ([(0.1, True), (0.2, True)], None),
        ([(0.1, False), (0.2, False)], None),
        ([], None),
    ],
)
def test_the_area_under_the_curve_is_the_share_of_pairs_in_the_right_order(
    scored: list[tuple[float, bool]], expected: float | None
) -> None:
    assert area_under_curve(scored) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("is_bfloat16", [False, True])
def test_the_number_of_cores_changes_no_bit_of_the_figures(
    network: PreTrainedModel, monkeypatch: pytest.MonkeyPatch, *, is_bfloat16: bool
) -> None:
    def figures(*, is_bfloat16: bool) -> Figures:
        # 30 tokens a pass: several passes, which run beside each other.
        return evaluate(network, CrossEntropy(), EXAMPLES, 30, is_bfloat16=is_bfloat16)

    found = []
    for num_cores in (1, 2, 5):
        monkeypatch.setattr(
            "os.sched_getaffinity", lambda _pid, num=num_cores: set(range(num)), raising=False
        )
        found.append(figures(is_bfloat16=is_bfloat16))
    assert found[1:] == found[:1] * 2
    assert (found[0] == figures(is_bfloat16=False)) == (not is_bfloat16)

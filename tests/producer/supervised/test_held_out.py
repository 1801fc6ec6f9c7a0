"""Figures on held-out items are the same on any machine."""

import pytest
from transformers import PreTrainedModel

from producer.supervised.held_out import Figures, evaluate
from producer.supervised.objective import CrossEntropy
from tests.producer.supervised.conftest import make_examples

EXAMPLES = make_examples(10)


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

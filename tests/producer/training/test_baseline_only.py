"""A training of which only the baseline was asked for is trained later under the same name."""

from typing import Any

import pytest

from producer.errors import UsageError
from producer.training.run import run
from schemas.installation import Installation
from tests.support.reading import ReadLog
from tests.support.small_run import small


def types(read_log: ReadLog) -> list[str]:
    return [event["type"].removeprefix("cua.") for event in read_log()]


@pytest.mark.parametrize("later", [{}, {"baseline_only": False}])
def test_a_baseline_is_followed_by_training_that_keeps_it(
    installation: Installation, read_log: ReadLog, later: dict[str, Any]
) -> None:
    first = run(small(baseline_only=True), installation=installation)
    assert (first.status, first.steps, first.success_after) == ("completed", 0, None)
    assert first.success_before is not None
    trained = run(small(**later), installation=installation)
    assert (trained.status, trained.steps, trained.generation) == ("completed", 3, 0)
    assert trained.success_before == first.success_before
    found = types(read_log)
    # The baseline, and the evaluations after steps 2 and 3.
    assert found.count("evaluation.created") == 3
    assert found.count("step.finished") == 3
    assert found.count("training.completed") == 2


def test_a_baseline_that_exists_is_reported_again(
    installation: Installation, read_log: ReadLog
) -> None:
    first = run(small(baseline_only=True), installation=installation)
    count = len(read_log())
    assert run(small(baseline_only=True), installation=installation).success_before == (
        first.success_before
    )
    assert len(read_log()) == count
    run(small(), installation=installation)
    again = run(small(baseline_only=True), installation=installation)
    assert (again.steps, again.success_before) == (3, first.success_before)


def test_the_progress_of_a_baseline_is_of_the_baseline_alone(
    installation: Installation, read_log: ReadLog
) -> None:
    run(small(baseline_only=True), installation=installation)
    (completed,) = [event for event in read_log() if event["type"] == "cua.training.completed"]
    assert completed["data"]["progress"]["percent"] == 100
    assert completed["data"]["status_message"] == "only the baseline was asked for"


def test_a_baseline_cannot_be_skipped_and_wanted(installation: Installation) -> None:
    run(small(skip_baseline=True, num_steps=1), installation=installation)
    with pytest.raises(UsageError, match="baseline_only: contradicts skip_baseline"):
        run(small(baseline_only=True, num_steps=1, skip_baseline=None), installation=installation)

"""`cua-train evaluate`: an evaluation by hand, whose facts are in the log too."""

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from producer.errors import NotFoundError, StopRequestedError
from producer.training.manual_evaluation import evaluate
from producer.training.run import run
from schemas.installation import Installation
from tests.support.invariants import accepted
from tests.support.small_run import small

ReadLog = Callable[[], list[dict[str, Any]]]


@pytest.mark.parametrize("training_name", ["small", None])
def test_an_evaluation_by_hand_is_a_stream_of_its_own_and_touches_no_training(
    installation: Installation, read_log: ReadLog, training_name: str | None
) -> None:
    run(small(num_steps=1), installation=installation)
    before = read_log()
    given = {} if training_name else {"model_name": "oracle"}
    summary = evaluate(
        {**given, "eval_episodes": 5}, training_name=training_name, installation=installation
    )
    assert (summary.episodes, 0.0 <= summary.success <= 1.0) == (5, True)
    added = [event for event in read_log() if event not in before]
    kinds = {event["subject"].partition("/")[0] for event in added}
    assert kinds == {"evaluation", "rollout", "environment"}
    assert sum(event["type"] == "cua.evaluation.finished" for event in added) == 1
    assert sum(event["type"] == "cua.evaluation.progressed" for event in added) > 0
    assert accepted(added)[1] == []


def test_an_evaluation_that_is_stopped_ends_its_groups_and_leaves_no_mark(
    installation: Installation, read_log: ReadLog
) -> None:
    stopped = threading.Event()
    stopped.set()
    with pytest.raises(StopRequestedError):
        evaluate(
            {"model_name": "oracle", "eval_episodes": 9},
            training_name=None,
            installation=installation,
            stop=stopped,
        )
    said = Counter(event["type"] for event in read_log())
    assert said["cua.group.created"] == said["cua.group.failed"] == 9
    assert said["cua.evaluation.cancelled"] == 1
    assert list(installation.open_dir.iterdir()) == []


def test_a_training_that_was_never_trained_here_is_not_found(installation: Installation) -> None:
    with pytest.raises(NotFoundError, match="nobody"):
        evaluate({}, training_name="nobody", installation=installation)

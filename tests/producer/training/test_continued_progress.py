"""No percentage of progress falls when a training is continued, and all end at 100 %."""

import threading
from collections import defaultdict
from typing import Any

import pytest

from producer.errors import StopRequestedError
from producer.training.run import run
from schemas.installation import Installation
from tests.support.reading import ReadLog
from tests.support.small_run import small


def percentages(events: list[dict[str, Any]]) -> dict[str, list[float]]:
    """What -> its percentages in order."""
    series: dict[str, list[float]] = defaultdict(list)
    for event in events:
        data, what = event["data"], event["subject"]
        what = data.get("step_id") or data.get("group_id") or what
        if isinstance(data.get("progress"), dict):
            series[what].append(data["progress"]["percent"])
    return series


@pytest.mark.parametrize("stop_after", [5, 12, 25, 40, 60, 80, 100, 120])
def test_no_percentage_falls_when_a_training_is_continued(
    installation: Installation,
    read_log: ReadLog,
    monkeypatch: pytest.MonkeyPatch,
    stop_after: int,
) -> None:
    """Stopped at several places of evaluations and steps; no event is throttled away."""
    monkeypatch.setattr("producer.training.progress.EVERY_S", 0.0)
    monkeypatch.setattr("producer.training.groups.PROGRESS_EVERY_S", 0.0)
    config = small(max_concurrent_rollouts=2)

    class AfterSomeChecks(threading.Event):
        """Set when it has been asked for so many times."""

        num_asked = 0

        def is_set(self) -> bool:
            self.num_asked += 1
            return super().is_set() or self.num_asked > stop_after

    with pytest.raises(StopRequestedError):
        run(config, installation=installation, stop=AfterSomeChecks())
    num_before = len(read_log())
    run(config, installation=installation)
    events = read_log()
    assert len(events) > num_before
    series = percentages(events)
    assert len(series) > 10
    for name, values in series.items():
        assert values == sorted(values), name
    (completed,) = [event for event in events if event["type"] == "cua.training.completed"]
    assert series[completed["subject"]][-1] == 100.0

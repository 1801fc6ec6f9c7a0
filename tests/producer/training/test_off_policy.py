"""Rollouts collected while a step is trained: how old, what is recorded, what is faster."""

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from producer.environments.environment import EnvironmentFailedError, Observation
from producer.errors import CuaTrainError, StopRequestedError, UsageError
from producer.resume.resume_state import find_states
from producer.training.run import run
from schemas.installation import Installation
from tests.support.invariants import violations
from tests.support.slow_device import SlowDevice
from tests.support.slow_run import Slow
from tests.support.small_run import small, watching

Event = dict[str, Any]
ReadLog = Callable[[], list[Event]]
STEPS_ONLY = {"skip_baseline": True, "eval_every": 0, "eval_episodes": 2}


def of_type(events: list[Event], name: str) -> list[Event]:
    return [event for event in events if event["type"] == f"cua.{name}"]


def samples(events: list[Event]) -> list[tuple[int, dict[str, Any]]]:
    """(step, sample)."""
    steps = {
        event["data"]["step_id"]: event["data"]["step"] for event in of_type(events, "step.created")
    }
    return [
        (steps[event["data"]["step_id"]], sample)
        for event in of_type(events, "step.samples_chosen")
        for sample in event["data"]["samples"]
    ]


def first_turn_versions(events: list[Event]) -> dict[str, int]:
    """Rollout id -> version of the policy that took its first turn."""
    return {
        event["subject"].removeprefix("rollout/"): event["data"]["policy_version"]
        for event in of_type(events, "rollout.turn_taken")
        if event["data"]["turn"] == 1
    }


def check_staleness(events: list[Event], at_most: int) -> Counter[int]:
    """What is recorded is what the turns say, and nothing older is trained on; of used samples."""
    versions = first_turn_versions(events)
    used: Counter[int] = Counter()
    for step, sample in samples(events):
        assert sample["policy_version"] == versions[sample["rollout_id"]]
        # Step n is trained by the version that the n - 1 steps before it made.
        assert sample["staleness"] == step - 1 - sample["policy_version"]
        if sample["used"] or sample["drop_reason"] == "zero_variance":
            assert sample["staleness"] <= at_most
            used[sample["staleness"]] += 1
    return used


def check_progress(events: list[Event]) -> None:
    """No figure of one process falls."""
    last: dict[tuple[str, str, str], float] = {}
    for event in events:
        if event["type"] in {"cua.training.progressed", "cua.step.progressed"}:
            data = event["data"]
            key = (event["source"], event["type"], data.get("step_id", ""))
            assert data["progress"]["percent"] >= last.get(key, 0.0)
            last[key] = data["progress"]["percent"]


def position(events: list[Event], name: str, step: int) -> int:
    """Of the first event of this type about this step, in its training's stream."""
    own = [event for event in events if event["subject"].startswith("training/")]
    created = next(event for event in of_type(own, "step.created") if event["data"]["step"] == step)
    step_id = created["data"]["step_id"]
    return next(
        index
        for index, event in enumerate(own)
        if event["type"] == f"cua.{name}" and event["data"].get("step_id") == step_id
    )


@pytest.mark.parametrize(("at_most", "seed"), [(1, 0), (1, 1), (2, 2), (3, 3), (4, 4)])
def test_whatever_the_latencies_nothing_older_than_allowed_is_trained_on(
    installation: Installation, read_log: ReadLog, at_most: int, seed: int
) -> None:
    config = small(
        **STEPS_ONLY, num_steps=6, max_steps_off_policy=at_most, max_concurrent_rollouts=4
    )
    with Slow(opening_s=0.02 * (seed % 2), acting_s=0.01, update_s=0.04 * (seed % 3), seed=seed):
        run(config, installation=installation)
    events = read_log()
    assert violations(events, num_steps=6, groups=2, group_size=3) == []
    used = check_staleness(events, at_most)
    assert sum(used.values()) == 6 * 2 * 3
    check_progress(events)


def test_rollouts_of_the_next_step_begin_while_a_step_is_trained_and_the_policy_is_called_by_one(
    installation: Installation, read_log: ReadLog
) -> None:
    config = small(**STEPS_ONLY, num_steps=4, max_steps_off_policy=1)
    with Slow(opening_s=0.02, update_s=0.4) as slow:
        run(config, installation=installation)
    assert slow.most_calls_at_once == 1
    events = read_log()
    for step in (1, 2, 3):
        begun = position(events, "step.rollouts_started", step + 1)
        assert begun < position(events, "step.finished", step)
    assert check_staleness(events, 1)[1] > 0
    metrics = [event["data"]["metrics"] for event in of_type(events, "step.finished")]
    assert metrics[0]["sampling/staleness_max"] == 0
    assert max(metric["sampling/staleness_max"] for metric in metrics) == 1


def test_without_it_every_sample_is_of_the_newest_version_and_no_step_overlaps(
    installation: Installation, read_log: ReadLog
) -> None:
    run(small(**STEPS_ONLY, num_steps=3), installation=installation)
    events = read_log()
    assert set(check_staleness(events, 0)) == {0}
    for step in (1, 2):
        assert position(events, "step.finished", step) < position(events, "step.created", step + 1)
    assert "sampling/staleness_max" not in of_type(events, "step.finished")[0]["data"]["metrics"]


@pytest.mark.parametrize(("at_most", "is_collected"), [(None, False), (1, True)])
def test_devices_work_during_the_update_only_off_policy(
    installation: Installation, read_log: ReadLog, at_most: int | None, is_collected: bool
) -> None:
    config = small(**STEPS_ONLY, num_steps=4, max_steps_off_policy=at_most)
    with Slow(opening_s=0.1, acting_s=0.05, update_s=0.6):
        run(config, installation=installation)
    events = read_log()
    updates = {
        event["data"]["step_id"]: [event["time"]]
        for event in of_type(events, "step.samples_chosen")
    }
    for event in of_type(events, "step.finished"):
        updates[event["data"]["step_id"]].append(event["data"]["training_ended_at"])
    turns = [event["data"]["started_at"] for event in of_type(events, "rollout.turn_taken")]
    during = [time for time in turns for begun, ended in updates.values() if begun < time < ended]
    assert bool(during) is is_collected


def test_an_evaluation_is_of_its_steps_weights_and_nothing_is_collected_beside_it(
    installation: Installation, read_log: ReadLog
) -> None:
    config = small(num_steps=4, max_steps_off_policy=2, eval_every=2, max_concurrent_rollouts=4)
    with Slow(acting_s=0.01, update_s=0.05):
        run(config, installation=installation)
    events = read_log()
    assert violations(events, num_steps=4, groups=2, group_size=3) == []
    created = {event["subject"]: event["data"] for event in of_type(events, "rollout.created")}
    step_of = {
        event["subject"].removeprefix("evaluation/"): event["data"]["step"]
        for event in of_type(events, "evaluation.created")
    }
    turns = of_type(events, "rollout.turn_taken")
    for turn in turns:
        rollout = created[turn["subject"]]
        if rollout["source_type"] != "step":
            assert turn["data"]["policy_version"] == step_of[rollout["source_id"]]
    times: dict[bool, list[tuple[str, str, str]]] = {True: [], False: []}
    for turn in turns:
        rollout, data = created[turn["subject"]], turn["data"]
        is_step = rollout["source_type"] == "step"
        times[is_step].append((data["started_at"], data["ended_at"], rollout["source_id"]))
    spans: dict[str, tuple[str, str]] = {}
    for started, ended, evaluation in times[False]:
        first, last = spans.get(evaluation, (started, ended))
        spans[evaluation] = (min(first, started), max(last, ended))
    assert len(spans) == 3
    for first, last in spans.values():
        assert not [item for item in times[True] if first < item[0] < last]


def test_a_state_names_offsets_before_every_rollout_of_a_later_step(
    installation: Installation, read_log: ReadLog
) -> None:
    with Slow(opening_s=0.02, update_s=0.1):
        run(small(**STEPS_ONLY, num_steps=4, max_steps_off_policy=2), installation=installation)
    events = read_log()
    steps = {
        event["data"]["step_id"]: event["data"]["step"] for event in of_type(events, "step.created")
    }
    later = {
        event["subject"]
        for event in of_type(events, "rollout.created")
        if steps.get(event["data"]["source_id"]) == 4
    }
    # The state of step 3 was saved when the rollouts of step 4 had begun.
    state = next(
        saved.manifest
        for saved in find_states(installation.runs_dir / "small")
        if saved.manifest.step == 3
    )
    assert later
    for event in events:
        if event["subject"] in later:
            since = state.since.get(f"{event['topic']}/{event['partition']}", 0)
            assert event["offset"] >= since


def stop_when(installation: Installation, line: str, **changes: object) -> None:
    """Run until a line of the log, then ask to stop."""
    stop = threading.Event()
    with (
        watching(lambda said: stop.set() if said.startswith(line) else None),
        pytest.raises(StopRequestedError),
    ):
        run(small(**changes), installation=installation, stop=stop)


def test_a_stop_cancels_what_is_collected_ahead_and_the_same_command_continues(
    installation: Installation, read_log: ReadLog
) -> None:
    settings = {**STEPS_ONLY, "num_steps": 5, "max_steps_off_policy": 2}
    with Slow(acting_s=0.02, update_s=0.05):
        stop_when(installation, "step 2/5", **settings)
        assert not [item for item in threading.enumerate() if item.name == "cua-collect-ahead"]
        before = {event["subject"] for event in of_type(read_log(), "rollout.finished")}
        run(small(**settings), installation=installation)
    events = read_log()
    assert violations(events, num_steps=5, groups=2, group_size=3) == []
    check_staleness(events, 2)
    check_progress(events)
    # What had finished is kept.
    assert before <= {f"rollout/{sample['rollout_id']}" for _, sample in samples(events)}


def test_a_training_keeps_its_limit_and_another_is_refused(
    installation: Installation, read_log: ReadLog
) -> None:
    settings = {**STEPS_ONLY, "num_steps": 3}
    with Slow(update_s=0.05):
        stop_when(installation, "step 1/3", **settings, max_steps_off_policy=2)
    before = read_log()
    for other in (1, 3):
        with pytest.raises(UsageError, match=f"max_steps_off_policy: 2 -> {other};"):
            run(small(**settings, max_steps_off_policy=other), installation=installation)
    assert read_log() == before
    run(small(**settings), installation=installation)
    metrics = [event["data"]["metrics"] for event in of_type(read_log(), "step.finished")]
    assert len(metrics) == 3
    assert all("sampling/staleness_max" in metric for metric in metrics)


def test_a_training_without_a_limit_gets_none_later(installation: Installation) -> None:
    run(small(**STEPS_ONLY, num_steps=1), installation=installation)
    with pytest.raises(UsageError, match="max_steps_off_policy: None -> 1;"):
        run(small(**STEPS_ONLY, num_steps=2, max_steps_off_policy=1), installation=installation)


def test_every_rollout_of_a_failing_device_ends_the_run_with_its_error(
    installation: Installation, read_log: ReadLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    num_opened = 0
    whole = SlowDevice.open

    def fail_later(self: SlowDevice, *arguments: Any) -> Observation:
        nonlocal num_opened
        num_opened += 1
        if num_opened > 2 * 6:
            message = "no device left"
            raise EnvironmentFailedError(message)
        return whole(self, *arguments)

    monkeypatch.setattr(SlowDevice, "open", fail_later)
    config = small(**STEPS_ONLY, num_steps=5, max_steps_off_policy=1, failure_policy="fail_fast")
    with Slow(update_s=0.05), pytest.raises(CuaTrainError, match="no device left"):
        run(config, installation=installation)
    events = read_log()
    assert of_type(events, "training.failed")
    # Both steps that were collected are trained before the third one's error ends the run.
    assert len(of_type(events, "step.finished")) == 2
    ends = Counter(
        event["subject"]
        for event in events
        if event["type"] in {"cua.rollout.finished", "cua.rollout.failed", "cua.rollout.cancelled"}
    )
    assert set(ends) == {event["subject"] for event in of_type(events, "rollout.created")}
    assert set(ends.values()) == {1}

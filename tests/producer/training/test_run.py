"""A training from its name to its summary, and everything that can happen in between."""

import fcntl
import json
import logging
import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from producer.emit import Emitter
from producer.emit.ownership import ClaimLostError, claim
from producer.errors import CuaTrainError, NotFoundError, StopRequestedError, UsageError
from producer.resume.open_training import open_training
from producer.training.manual_evaluation import evaluate
from producer.training.run import run, utc_now
from schemas.catalogue import stream
from schemas.ids import training_id
from schemas.installation import Installation, read_installation
from schemas.training import TrainingCreated, TrainingResumed
from tests.support.invariants import violations
from tests.support.reading import ReadLog, of_type
from tests.support.small_run import small, watching


def whole(events: list[dict[str, Any]], num_steps: int = 3) -> list[str]:
    return violations(events, num_steps=num_steps, groups=2, group_size=3)


def types(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"].removeprefix("cua.") for event in events]


def test_an_undisturbed_run_leaves_every_stream_whole_and_every_entity_at_its_end(
    installation: Installation, read_log: ReadLog
) -> None:
    summary = run(small(), installation=installation)
    assert (summary.status, summary.steps, summary.episodes, summary.generation) == (
        "completed",
        3,
        4,
        0,
    )
    assert summary.success_before is not None
    assert summary.success_after is not None
    events = read_log()
    assert whole(events) == []
    said = types(events)
    # Two evaluations on schedule (after step 2, after the last), one baseline; three steps of two
    # groups; a checkpoint before, at 2 and 3.
    assert said.count("evaluation.finished") == 3
    assert said.count("step.finished") == 3
    assert said.count("checkpoint.saved") == 3
    assert said.count("rollout.finished") == 3 * 2 * 3 + 3 * 4


def test_a_complete_training_is_left_alone_and_goes_on_when_more_steps_are_asked_for(
    installation: Installation, read_log: ReadLog
) -> None:
    first = run(small(), installation=installation)
    before = read_log()
    again = run(small(), installation=installation)
    assert (again.status, again.steps) == ("completed", 3)
    assert replace(again, seconds=first.seconds) == first
    skipped = run(small(behavior_if_log_dir_exists="skip"), installation=installation)
    assert replace(skipped, seconds=first.seconds, status="completed") == first
    assert read_log() == before
    more = run(small(num_steps=4), installation=installation)
    assert more.steps == 4
    assert whole(read_log(), num_steps=4) == []


def test_other_settings_than_recorded_are_a_usage_error_that_lists_them(
    installation: Installation,
) -> None:
    run(small(num_steps=1), installation=installation)
    with pytest.raises(UsageError, match=r"group_size: 3 -> 5") as error:
        run(small(num_steps=1, group_size=5, temperature=0.5), installation=installation)
    assert "temperature: 1.0 -> 0.5" in str(error.value)


def test_what_is_not_said_again_is_taken_from_the_record(installation: Installation) -> None:
    run(small(num_steps=1), installation=installation)
    from producer.config import read_config

    summary = run(
        read_config({"training_name": "small", "num_steps": 2}), installation=installation
    )
    assert (summary.status, summary.steps) == ("completed", 2)


def test_a_stop_in_the_middle_is_continued_without_losing_or_doubling_a_rollout(
    installation: Installation, read_log: ReadLog
) -> None:
    stop = threading.Event()

    def watch(line: str) -> None:
        if line.startswith("step 1/"):
            stop.set()

    with watching(watch), pytest.raises(StopRequestedError):
        run(small(), installation=installation, stop=stop)
    assert types(read_log())[-1] == "training.cancelled"
    summary = run(small(), installation=installation)
    assert summary.status == "completed"
    events = read_log()
    assert whole(events) == []
    assert types(events).count("training.resumed") == 1


def test_a_training_that_was_killed_before_its_first_state_is_found_by_every_later_process(
    installation: Installation, read_log: ReadLog
) -> None:
    with Emitter.open(installation) as emitter:
        open_training(
            emitter,
            "small",
            small(),
            installation.runs_dir / "small",
            clock=utc_now,
        )
    stopped = threading.Event()
    stopped.set()
    with pytest.raises(StopRequestedError):
        run(small(), installation=installation, stop=stopped)
    assert run(small(), installation=installation).status == "completed"
    events = read_log()
    assert types(events).count("training.created") == 1
    assert whole(events) == []


def test_steps_trained_again_after_a_lost_state_are_a_new_generation_and_the_old_ones_stay_marked(
    installation: Installation, read_log: ReadLog, caplog: pytest.LogCaptureFixture
) -> None:
    run(small(), installation=installation)
    shutil.rmtree(installation.runs_dir / "small" / "state" / "generation-0" / "step-000003")
    with caplog.at_level(logging.WARNING):
        summary = run(small(num_steps=4), installation=installation)
    assert "the state after step 3 is missing in" in caplog.text
    assert (summary.steps, summary.generation) == (4, 1)
    events = read_log()
    superseded = {
        event["data"]["step_id"]
        for event in events
        if event["type"] == "cua.training.step_superseded"
    }
    created = {
        event["data"]["step_id"]: event["data"]
        for event in events
        if event["type"] == "cua.step.created"
    }
    assert [(created[step]["generation"], created[step]["step"]) for step in superseded] == [(0, 3)]
    assert [(item["generation"], item["step"]) for item in created.values()] == [
        (0, 1),
        (0, 2),
        (0, 3),
        (1, 3),
        (1, 4),
    ]


def test_overwriting_begins_a_new_generation_and_deletes_nothing(
    installation: Installation, read_log: ReadLog
) -> None:
    run(small(), installation=installation)
    before = read_log()
    summary = run(small(behavior_if_log_dir_exists="overwrite"), installation=installation)
    assert (summary.steps, summary.generation) == (3, 1)
    after = read_log()
    assert [event for event in after if event in before] == before
    assert types(after).count("training.step_superseded") == 3
    assert types(after).count("evaluation.superseded") == 2


@pytest.mark.parametrize(("behavior", "raised"), [("raise", UsageError), ("skip", None)])
def test_a_training_that_exists_can_be_refused_or_skipped(
    installation: Installation, behavior: str, raised: type[Exception] | None
) -> None:
    run(small(num_steps=1), installation=installation)
    again = small(num_steps=5, behavior_if_log_dir_exists=behavior)
    if raised is not None:
        with pytest.raises(raised, match="small"):
            run(again, installation=installation)
    else:
        assert run(again, installation=installation).status == "skipped"


def test_a_training_whose_lock_is_held_is_refused_and_the_holder_named(
    installation: Installation,
) -> None:
    folder = installation.runs_dir / "small"
    folder.mkdir(parents=True)
    with Path(folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write('{"pid": 4711}')
        file.flush()
        with pytest.raises(CuaTrainError, match="4711"):
            run(small(), installation=installation)


def test_a_failure_is_stated_and_the_same_command_continues(
    installation: Installation, read_log: ReadLog
) -> None:
    run(small(num_steps=1), installation=installation)
    optimistic = small(num_steps=2)
    state = (
        installation.runs_dir / "small" / "state" / "generation-0" / "step-000001" / "scripted.json"
    )
    kept = state.read_text()
    state.write_text("{")
    with pytest.raises(ValueError, match="Expecting"):
        run(optimistic, installation=installation)
    assert types(read_log())[-1] == "training.failed"
    state.write_text(kept)
    assert run(optimistic, installation=installation).steps == 2
    assert whole(read_log(), num_steps=2) == []


def said_by_rollout(events: list[dict[str, Any]], training_name: str) -> dict[str, list[str]]:
    """What was said in each rollout, turn by turn.

    A rollout is called by its place in the training.
    """
    place_of = {
        event["subject"]: event["data"]["rollout_id"].removeprefix(f"{training_name}/")
        for event in events
        if event["type"] == "cua.rollout.created"
        and event["data"]["rollout_id"].startswith(f"{training_name}/")
    }
    said: dict[str, list[str]] = {place: [] for place in place_of.values()}
    for event in events:
        if event["type"] == "cua.rollout.turn_taken" and event["subject"] in place_of:
            said[place_of[event["subject"]]].append(event["data"]["model_response"])
    return said


def test_the_same_configuration_says_the_same_under_any_name_and_other_things_with_another_seed(
    installation: Installation, read_log: ReadLog
) -> None:
    summaries = [
        run(small(training_name=name, seed=seed), installation=installation)
        for name, seed in (("a", 0), ("b", 0), ("c", 1))
    ]
    assert (summaries[0].success_before, summaries[0].success_after) == (
        summaries[1].success_before,
        summaries[1].success_after,
    )
    first, second, other = (said_by_rollout(read_log(), name) for name in ("a", "b", "c"))
    assert len(first) == 3 * 3 * 2 + 3 * 4
    assert first == second
    assert first.keys() == other.keys()
    assert first != other


def test_evaluations_of_a_policy_that_learns_nothing_say_the_same_and_steps_do_not(
    installation: Installation, read_log: ReadLog
) -> None:
    run(small(), installation=installation)
    by_source: dict[str, dict[str, list[str]]] = {}
    for place, said in said_by_rollout(read_log(), "small").items():
        _, source, where = place.split("/", 2)
        by_source.setdefault(source, {})[where] = said
    assert by_source.keys() == {"baseline", "eval-2", "eval-3", "step-1", "step-2", "step-3"}
    assert by_source["baseline"] == by_source["eval-2"] == by_source["eval-3"]
    assert by_source["step-1"] != by_source["step-2"]
    assert len({tuple(said) for said in by_source["step-1"].values()}) > 2


def test_a_process_whose_training_was_taken_over_stops_and_says_who_has_it(
    installation: Installation, read_log: ReadLog
) -> None:
    """The second writer claims the stream as a process on another host would with --takeover."""
    taken = False

    def watch(line: str) -> None:
        nonlocal taken
        if line.startswith("step 1/") and not taken:
            taken = True
            # The first process may emit in between: then the claim is stale, and another writer
            # makes it anew.
            while not claimed():
                pass

    def claimed() -> bool:
        subject = stream("training", training_id("small"))
        with Emitter.open(installation) as other:
            history = other.log.read_back(subject, {})
            created = history.events[0].payload
            assert isinstance(created, TrainingCreated)
            resumed = TrainingResumed(
                generation=0,
                current_step=0,
                total_steps=3,
                recipe=created.recipe,
                config=created.config,
            )
            try:
                claim(other, resumed, history, {})
            except ClaimLostError:
                return False
            return True

    with watching(watch), pytest.raises(ClaimLostError, match="//"):
        run(small(num_steps=200), installation=installation, heartbeat_s=0.05)
    assert "training.resumed" in types(read_log())
    assert "training.cancelled" not in types(read_log())


def test_the_samples_of_a_group_of_any_size_are_told_in_several_events(
    installation: Installation, read_log: ReadLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("producer.training.samples.SAMPLES_PER_EVENT", 2)
    run(small(num_steps=1), installation=installation)
    events = read_log()
    assert whole(events, num_steps=1) == []
    chosen = of_type(events, "step.samples_chosen")
    assert [len(item["samples"]) for item in chosen] == [2, 1, 2, 1]
    assert len({sample["rollout_id"] for item in chosen for sample in item["samples"]}) == 6


def test_a_training_in_a_folder_of_the_users_is_found_by_its_name_alone(
    installation: Installation, tmp_path: Path
) -> None:
    folder = tmp_path / "elsewhere"
    first = run(small(num_steps=1, log_path=folder), installation=installation)
    assert run(small(num_steps=1), installation=installation).log_path == first.log_path
    more = run(small(num_steps=2), installation=installation)
    assert (more.steps, more.generation, more.log_path) == (2, 0, str(folder))
    evaluated = evaluate({"eval_episodes": 2}, training_name="small", installation=installation)
    assert evaluated.episodes == 2


def test_a_folder_of_another_training_and_an_empty_one_beside_the_known_are_refused(
    installation: Installation, tmp_path: Path, read_log: ReadLog
) -> None:
    folder = tmp_path / "elsewhere"
    run(small(num_steps=1, log_path=folder), installation=installation)
    before = read_log()
    with pytest.raises(UsageError, match="elsewhere holds training 'small', not 'other'"):
        run(small(training_name="other", log_path=folder), installation=installation)
    with pytest.raises(UsageError, match=r"training 'small' is in .*elsewhere; omit --log-path"):
        run(small(num_steps=2, log_path=tmp_path / "new"), installation=installation)
    assert not (tmp_path / "new").exists()
    folder.rename(tmp_path / "moved")
    with pytest.raises(NotFoundError, match="elsewhere, does not exist; mount or restore it"):
        run(small(num_steps=2), installation=installation)
    assert read_log() == before
    moved = run(small(num_steps=2, log_path=tmp_path / "moved"), installation=installation)
    assert (moved.steps, moved.generation) == (2, 0)


def test_a_run_that_is_refused_before_its_first_event_leaves_no_folder(tmp_path: Path) -> None:
    home = tmp_path / "home"
    away = read_installation({"CUA_HOME": str(home), "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"})
    stop = threading.Event()
    stop.set()
    with pytest.raises(StopRequestedError):  # while it waits for Kafka
        run(small(), installation=away, stop=stop)
    assert not home.exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"model_name": "{empty}"},
        {"tasks": {"source_type": "file", "file_path": "{empty}/none.json"}},
        {"eval_tasks": {"source_type": "ids", "task_ids": ["no_such_task"]}},
    ],
)
def test_a_policy_or_task_that_does_not_exist_leaves_no_training(
    installation: Installation, tmp_path: Path, changes: dict[str, Any]
) -> None:
    (tmp_path / "empty").mkdir()
    given = json.loads(json.dumps(changes).replace("{empty}", str(tmp_path / "empty")))
    with pytest.raises((UsageError, NotFoundError)):
        run(small(**given), installation=installation)
    assert not installation.home.exists()


def test_other_settings_begin_a_new_generation_where_overwrite_is_asked_for(
    installation: Installation, read_log: ReadLog
) -> None:
    run(small(num_steps=1), installation=installation)
    changed = small(num_steps=1, seed=5, behavior_if_log_dir_exists="overwrite")
    summary = run(changed, installation=installation)
    assert (summary.status, summary.generation) == ("completed", 1)
    resumed = of_type(read_log(), "training.resumed")
    assert [(item["config"]["seed"], item["recipe"]["seed"]) for item in resumed] == [(5, 5)]

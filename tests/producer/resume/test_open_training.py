"""How a training that exists goes on: which state, which generation, and what is refused."""

import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from producer.config import RunConfig, read_config
from producer.emit import Emitter
from producer.errors import CuaTrainError, StopRequestedError, UsageError
from producer.resume.open_training import OpenedTraining, Plan, open_training, plan_training
from producer.resume.recorded_training import read_recorded_training
from producer.resume.resume_state import find_states
from producer.training.run import run, utc_now
from schemas import ids
from schemas.evaluation import EvaluationCreated
from schemas.group import GroupCreated, GroupFailed
from schemas.installation import Installation
from tests.support.invariants import accepted
from tests.support.small_run import small, watching

ReadLog = Callable[[], list[dict[str, Any]]]
OPEN_SETTINGS = {
    "task_id": "open",
    "description": "Open the Settings app.",
    "validation_query": "current_app",
    "expected": "com.android.settings",
    "max_steps": 4,
}


def plan_of(
    installation: Installation, *, overwrite: bool = False, **changes: object
) -> Plan[RunConfig]:
    """What a process would do now; it emits nothing."""
    folder = installation.runs_dir / "small"
    with Emitter.open(installation) as emitter:
        recorded = read_recorded_training(emitter, "small", folder)
        plan = plan_training(recorded, small(**changes), folder, overwrite=overwrite)
    assert isinstance(plan, Plan)
    return plan


def claim_and_die(installation: Installation, *, overwrite: bool, **changes: object) -> None:
    with Emitter.open(installation) as emitter:
        opened = open_training(
            emitter,
            "small",
            small(**changes),
            installation.runs_dir / "small",
            clock=utc_now,
            overwrite=overwrite,
        )
        assert isinstance(opened, OpenedTraining)


def test_a_training_goes_on_from_its_newest_state_in_the_same_generation(
    installation: Installation,
) -> None:
    run(small(num_steps=2), installation=installation)
    plan = plan_of(installation, num_steps=5)
    assert (plan.generation, plan.begins_generation, plan.manifest.step) == (0, False, 2)
    assert plan.state_folder is not None
    assert plan.state_folder.name == "step-000002"


def test_an_unfinished_training_cannot_end_before_the_steps_that_it_has_completed(
    installation: Installation,
) -> None:
    run(small(num_steps=2), installation=installation)
    claim_and_die(installation, overwrite=False, num_steps=5)
    with pytest.raises(UsageError, match="num_steps: 1 is less than the 2 steps"):
        plan_of(installation, num_steps=1)
    assert plan_of(installation, num_steps=2).manifest.step == 2
    assert plan_of(installation, overwrite=True, num_steps=1).manifest.step == 0


def test_planning_emits_nothing(installation: Installation, read_log: ReadLog) -> None:
    run(small(num_steps=1), installation=installation)
    before = read_log()
    plan_of(installation, num_steps=2)
    assert read_log() == before


def test_a_process_killed_right_after_overwriting_does_not_bring_the_old_state_back(
    installation: Installation,
) -> None:
    run(small(), installation=installation)
    claim_and_die(installation, overwrite=True)
    plan = plan_of(installation)
    assert (plan.generation, plan.begins_generation) == (1, False)
    assert (plan.manifest.step, plan.state_folder) == (0, None)


def state_folder(installation: Installation) -> Path:
    return installation.runs_dir / "small" / "state"


def test_overwriting_takes_nothing_over_from_the_state(installation: Installation) -> None:
    run(small(), installation=installation)
    (newest, *_) = find_states(installation.runs_dir / "small")
    assert newest.manifest.evaluations
    assert newest.manifest.pending
    plan = plan_of(installation, overwrite=True)
    assert (plan.generation, plan.state_folder, plan.manifest.step) == (1, None, 0)
    assert (plan.manifest.evaluations, plan.manifest.pending) == ((), ())


def test_a_process_killed_right_after_it_began_a_generation_is_continued_from_the_same_state(
    installation: Installation,
) -> None:
    run(small(), installation=installation)
    shutil.rmtree(state_folder(installation) / "generation-0" / "step-000003")
    claim_and_die(installation, overwrite=False, num_steps=4)
    plan = plan_of(installation, num_steps=4)
    assert (plan.generation, plan.begins_generation, plan.manifest.step) == (1, False, 2)
    assert plan.state_folder == state_folder(installation) / "generation-0" / "step-000002"


def test_an_evaluation_of_a_policy_that_is_lost_is_not_kept(installation: Installation) -> None:
    stop = threading.Event()

    def stop_after_baseline(line: str) -> None:
        if line.startswith("baseline:"):
            stop.set()

    with watching(stop_after_baseline), pytest.raises(StopRequestedError):
        run(small(), installation=installation, stop=stop)
    assert not plan_of(installation).begins_generation
    shutil.rmtree(state_folder(installation))
    plan = plan_of(installation)
    assert (plan.generation, plan.begins_generation, plan.state_folder) == (1, True, None)


def test_offsets_of_another_log_are_forgotten(installation: Installation) -> None:
    run(small(num_steps=1), installation=installation)
    for path in state_folder(installation).rglob("manifest.json"):
        manifest = json.loads(path.read_text())
        beyond = dict.fromkeys(manifest["since"], 1_000_000)
        elsewhere = {"log_id": "elsewhere", "since": beyond, "log_start": beyond}
        path.write_text(json.dumps(manifest | elsewhere))
    manifest = plan_of(installation, num_steps=2).manifest
    assert (manifest.log_start, manifest.since) == ({}, {})
    assert manifest.log_id != "elsewhere"
    assert run(small(num_steps=2), installation=installation).steps == 2


def test_events_that_the_state_has_and_the_log_too_are_not_emitted_again(
    installation: Installation, read_log: ReadLog
) -> None:
    run(small(num_steps=1), installation=installation)
    run(small(num_steps=2), installation=installation)
    types = [event["type"] for event in read_log()]
    assert types.count("cua.step.finished") == 2
    assert types.count("cua.checkpoint.saved") == 3


@pytest.mark.parametrize(
    "damage",
    ["{", "[]", '{"generation": "x"}', '{"step": null}', '{"evaluations": [7]}', '{"pending": 7}'],
)
def test_a_damaged_manifest_is_passed_over_for_the_state_before_it(
    installation: Installation, damage: str
) -> None:
    run(small(num_steps=2), installation=installation)
    newest = plan_of(installation, num_steps=5).state_folder
    assert newest is not None
    manifest = newest / "manifest.json"
    changes = json.loads(damage) if damage != "{" else None
    whole = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(whole | changes) if isinstance(changes, dict) else damage)
    plan = plan_of(installation, num_steps=5)
    assert (plan.generation, plan.begins_generation, plan.manifest.step) == (1, True, 1)


def test_a_file_in_place_of_the_run_s_folder_is_a_usage_error(installation: Installation) -> None:
    installation.runs_dir.mkdir(parents=True)
    (installation.runs_dir / "small").write_text("")
    with pytest.raises(UsageError, match="cannot be created"):
        run(small(), installation=installation)


SEED_0_ALONE = "test -e /sdcard/DCIM/Camera/IMG_002.jpg"
"""Works on the phone on which tasks are checked, and on none of the two that the run opens."""


@pytest.mark.parametrize("skip_baseline", [True, False])
def test_a_failed_step_or_evaluation_is_final_and_the_same_command_begins_a_new_generation(
    installation: Installation, read_log: ReadLog, tmp_path: Path, *, skip_baseline: bool
) -> None:
    tasks = tmp_path / "tasks.json"
    tasks.write_text(json.dumps([{**OPEN_SETTINGS, "setup": [SEED_0_ALONE]}]))
    config = read_config(
        {
            "training_name": "unlucky",
            "model_name": "oracle",
            "num_steps": 1,
            "group_size": 2,
            "groups_per_batch": 1,
            "eval_episodes": 2,
            "max_attempts": 1,
            "skip_baseline": skip_baseline,
            "tasks": {"source_type": "file", "file_path": str(tasks)},
        }
    )
    with pytest.raises(CuaTrainError, match=r"every group failed|no episode of baseline"):
        run(config, installation=installation)
    tasks.write_text(json.dumps([OPEN_SETTINGS]))
    summary = run(config, installation=installation)
    assert (summary.status, summary.steps, summary.generation) == ("completed", 1, 1)
    events = read_log()
    kind = "training.step_superseded" if skip_baseline else "evaluation.superseded"
    superseded = [event for event in events if event["type"] == f"cua.{kind}"]
    assert len(superseded) == (1 if skip_baseline else 0)
    failed = "step.failed" if skip_baseline else "evaluation.failed"
    assert [event["type"] for event in events].count(f"cua.{failed}") == 1


def test_a_group_that_failed_makes_no_evaluation_a_failed_one(installation: Installation) -> None:
    run(small(num_steps=1), installation=installation)
    evaluation_id = ids.eval_id(ids.training_id("small"), 0, 1)
    group_id = ids.group_id(evaluation_id, 99)
    with Emitter.open(installation) as emitter:
        subject = f"evaluation/{evaluation_id}"
        stream = emitter.stream(subject, emitter.log.read_back(subject, {}))
        stream.emit(
            GroupCreated(
                group_id=group_id,
                source_type="eval",
                source_id=evaluation_id,
                group_num=99,
                batch=0,
                num_rollouts=1,
            )
        )
        stream.emit(
            GroupFailed(
                group_id=group_id, completed_rollouts=0, error_message="a", ended_at=utc_now()
            )
        )
    assert not plan_of(installation, num_steps=2).begins_generation


def test_what_a_generation_evaluated_without_an_end_is_superseded_by_the_next_one(
    installation: Installation, read_log: ReadLog
) -> None:
    """Taken over where no state is: nobody goes on with the baseline that was begun elsewhere."""
    own = ids.training_id("small")
    baseline_id = ids.baseline_id(own, 0)
    group_id = ids.group_id(baseline_id, 0)
    claim_and_die(installation, overwrite=False, num_steps=1)
    with Emitter.open(installation) as emitter:
        stream = emitter.stream(f"evaluation/{baseline_id}", training_id=own)
        stream.emit(
            EvaluationCreated(
                kind="baseline",
                training_id=own,
                generation=0,
                step=0,
                model_path="oracle",
                total_tasks=4,
            )
        )
        stream.emit(
            GroupCreated(
                group_id=group_id,
                source_type="baseline",
                source_id=baseline_id,
                group_num=0,
                batch=0,
                num_rollouts=4,
            )
        )
    assert run(small(num_steps=1), installation=installation).generation == 1
    events = read_log()
    (superseded,) = (event for event in events if event["type"] == "cua.evaluation.superseded")
    assert superseded["subject"] == f"evaluation/{baseline_id}"
    assert superseded["data"] == {"kind": "baseline", "group_ids": [str(group_id)]}
    assert accepted(events)[1] == []
    # One that has its result stays as it is.
    run(small(num_steps=1), installation=installation)
    claim_and_die(installation, overwrite=True, num_steps=1)
    later = [event for event in read_log() if event["type"] == "cua.evaluation.superseded"]
    assert [item["data"]["kind"] for item in later] == ["baseline", "scheduled"]

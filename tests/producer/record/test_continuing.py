"""A recorded training goes on under its name: after a kill, from an older checkpoint, or not."""

import signal
import subprocess
import sys

import pytest

from producer import record
from producer.errors import CuaTrainError, UsageError
from schemas.rollout import RolloutCancelled, RolloutCreated
from schemas.step import StepCreated
from schemas.training import RECORDED_BY, StepSuperseded, TrainingCreated, TrainingResumed
from tests.support.forked_command import run_command
from tests.support.paths import ROOT
from tests.support.recorded import folded, installation, of_type, problems, start_small, statuses

KILLED = """
import os, signal
from tests.support.recorded import start_small
with start_small() as training:
    for _ in range(2):
        with training.step() as step:
            with step.group("a") as group, group.rollout() as rollout:
                rollout.turn(completion="x")
                if training.last_step == 1:
                    training._recording.emitter.flush()
                    os.kill(os.getpid(), signal.SIGKILL)
                rollout.finish(reward=1)
            step.metrics(loss=0)
"""


def steps(training: record.Training, number: int) -> None:
    for _ in range(number):
        with training.step() as step:
            with step.group("a") as group, group.rollout() as rollout:
                rollout.turn(completion="x")
                rollout.finish(reward=1)
            step.metrics(loss=0)


def created_steps() -> list[tuple[int, int]]:
    return [(one.generation, one.step) for one in of_type(StepCreated)]


def test_a_killed_process_is_followed_by_one_that_repeats_the_interrupted_step() -> None:
    done = subprocess.run([sys.executable, "-c", KILLED], cwd=ROOT, check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL

    with start_small() as training:
        assert training.last_step == 1
        steps(training, 2)

    assert created_steps() == [(0, 1), (0, 2), (1, 2), (1, 3)]
    assert len(of_type(StepSuperseded)) == 1
    assert len(of_type(RolloutCancelled)) == 1
    names = [one.rollout_id for one in of_type(RolloutCreated)]
    assert len(set(names)) == len(names) == 4
    assert statuses()["training"] == ["completed"]
    assert problems(folded()) == []


Times = tuple[dict[str, int], int, int]
"""Arguments of `record.open`, `last_step` at its beginning, steps made."""


@pytest.mark.parametrize(
    ("times", "created", "num_superseded"),
    [
        pytest.param(
            [({}, 0, 1), ({}, 1, 2)],
            [(0, 1), (0, 2), (0, 3)],
            0,
            id="a loop that ended early goes on in the same generation",
        ),
        pytest.param(
            [({}, 0, 2), ({"after_step": 1}, 1, 1), ({"after_step": 2}, 2, 1)],
            [(0, 1), (0, 2), (1, 2), (1, 3)],
            1,
            id="one that goes on from an older checkpoint begins a generation",
        ),
        pytest.param(
            [({}, 0, 2), ({"after_step": 0}, 0, 1)],
            [(0, 1), (0, 2), (1, 1)],
            2,
            id="one may begin anew and nothing is deleted",
        ),
        pytest.param(
            [({"num_steps": 1}, 0, 1), ({"num_steps": 2}, 1, 1)],
            [(0, 1), (0, 2)],
            0,
            id="more steps continue a complete one",
        ),
    ],
)
def test_a_loop_goes_on_after_the_step_that_it_names_or_the_newest(
    times: list[Times], created: list[tuple[int, int]], num_superseded: int
) -> None:
    for given, last, num_steps in times:
        with start_small(**given) as training:
            assert training.last_step == last
            steps(training, num_steps)

    assert created_steps() == created
    assert len(of_type(StepSuperseded)) == num_superseded
    assert problems(folded()) == []


def test_a_checkpoint_of_a_training_that_the_log_does_not_know_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with start_small(name="new", num_steps=9, after_step=7) as training:
        assert training.last_step == 0
    assert "training 'new' has no step 7 in the log; it goes on after step 0" in caplog.text


def test_a_step_before_the_newest_generation_is_refused() -> None:
    with start_small() as training:
        steps(training, 2)
    with start_small(after_step=1):
        pass
    with (
        pytest.raises(record.OrderError, match="its newest generation began after step 1"),
        start_small(after_step=0),
    ):
        pass


def test_a_checkpoint_after_a_step_that_was_not_recorded_leaves_a_gap_of_numbers() -> None:
    with start_small() as training:
        steps(training, 1)
    with start_small(after_step=2) as training:
        assert training.last_step == 1
        with training.step(3) as step:
            step.metrics(loss=0)

    assert created_steps() == [(0, 1), (0, 3)]
    assert statuses()["training"] == ["completed"]


def test_without_its_folder_a_training_goes_on_by_its_log() -> None:
    with start_small() as training:
        steps(training, 2)
    folder = installation().runs_dir / "mine"
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()

    with start_small() as training:
        assert training.last_step == 2
        steps(training, 1)

    assert created_steps() == [(0, 1), (0, 2), (0, 3)]


def test_a_complete_training_is_refused() -> None:
    with start_small(num_steps=1) as training:
        steps(training, 1)
    with (
        pytest.raises(record.OrderError, match="is complete after step 1"),
        start_small(num_steps=1),
    ):
        pass


def test_an_interrupted_evaluation_is_repeated_in_a_generation_of_its_own() -> None:
    with start_small() as training:
        steps(training, 1)
        with pytest.raises(ZeroDivisionError), training.evaluation(num_episodes=1):
            raise ZeroDivisionError
    with (
        start_small() as training,
        training.evaluation(num_episodes=1) as evaluation,
        evaluation.group("a", num_rollouts=1) as group,
        group.rollout() as rollout,
    ):
        rollout.finish(reward=1)

    assert [one.generation for one in of_type(TrainingResumed)] == [1]
    assert statuses()["eval"] == ["completed", "failed"]
    assert problems(folded()) == []


def test_another_policy_under_the_same_name_is_refused() -> None:
    with start_small() as training:
        steps(training, 1)
    with (
        pytest.raises(UsageError, match="trains 'org/policy', not 'other'"),
        record.open("mine", policy="other", num_steps=3),
    ):
        pass


def test_a_training_that_is_being_recorded_is_refused_without_flags_of_our_commands() -> None:
    with (
        start_small(),
        pytest.raises(CuaTrainError, match="is being trained on this host") as raised,
        start_small(),
    ):
        pass
    assert "--" not in str(raised.value)


def test_commands_that_need_the_weights_say_that_another_trainer_has_them() -> None:
    with start_small(num_steps=1) as training:
        steps(training, 1)
    (created,) = of_type(TrainingCreated)
    assert RECORDED_BY in created.config
    for arguments in (["redo", "--step", "1"], ["evaluate"]):
        done = run_command("producer", *arguments, "--training-name", "mine")
        assert done.returncode == 2, done.stderr
        assert "another trainer runs this training" in " ".join(done.stderr.split())

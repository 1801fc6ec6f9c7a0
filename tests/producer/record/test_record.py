"""What a loop records is a training like our own, and a wrong call leaves nothing."""

import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from producer import record
from producer.blobs import FolderBlobs
from producer.errors import UsageError
from producer.task import Task as OwnTask
from schemas.arrays import decode_float32, decode_int32
from schemas.evaluation import EvaluationCreated, EvaluationFinished
from schemas.group import GroupDropped, GroupFailed, GroupFinished
from schemas.rollout import RolloutCancelled, RolloutCreated, RolloutFailed, RolloutFinished
from schemas.step import SamplesChosen, StepFailed, StepFinished
from schemas.task import TaskStated
from schemas.training import (
    TrainingCancelled,
    TrainingCompleted,
    TrainingCreated,
    TrainingProgressed,
)
from schemas.turn import TurnTaken
from tests.support.paths import ROOT
from tests.support.recorded import (
    folded,
    installation,
    of_type,
    one_rollout,
    one_step,
    png,
    problems,
    start_small,
    statuses,
    types,
)

ONE_STEP = [
    "step.created",
    "step.collection_started",
    "task.stated",
    "group.created",
    "rollout.created",
    "rollout.started",
    "step.rollouts_started",
    "group.started",
    "rollout.turn_taken",
    "rollout.finished",
    "group.finished",
    "step.samples_chosen",
    "step.training_started",
    "step.finished",
    "training.progressed",
]


def take_step(training: record.Training, rewards: tuple[float, ...] = (0.0, 1.0)) -> record.Step:
    with training.step() as step:
        with step.group("Turn on Wi-Fi") as group:
            for reward in rewards:
                with group.rollout() as rollout:
                    rollout.turn(completion="ok", done=True)
                    rollout.finish(reward=reward)
        step.metrics(loss=0.5)
    return step


def test_a_step_is_recorded_in_the_order_of_our_own_trainer() -> None:
    with start_small(num_steps=1) as training:
        take_step(training, (1.0,))

    begin = ["training.created", "training.initialization_started", "training.started"]
    assert types() == [*begin, *ONE_STEP, "training.completed"]
    assert problems(folded()) == []


def test_group_and_step_have_the_figures_of_their_rollouts() -> None:
    with start_small(num_steps=1) as training, training.step(learning_rate=1e-4) as step:
        for rewards in ((0.0, 1.0), (0.5, 0.5)):
            with step.group("a task") as group:
                for reward in rewards:
                    with group.rollout() as rollout:
                        rollout.turn(
                            completion="ok", prompt_tokens=[1], completion_tokens=[2, 3], done=True
                        )
                        rollout.finish(reward=reward, success=reward == 1)
            if rewards == (0.0, 1.0):
                group.advantages([-0.5, 0.5])
            else:
                group.drop("zero_variance")
        step.update()
        step.metrics({"actor/entropy": 1.25}, loss=2.0, kl=0.1, gradient_norm=3.0)

    groups = of_type(GroupFinished)
    assert [(one.reward_mean, one.reward_std, one.success_count) for one in groups] == [
        (0.5, 0.5, 1),
        (0.5, 0.0, 0),
    ]
    samples = [sample for chosen in of_type(SamplesChosen) for sample in chosen.samples]
    assert [(one.advantage, one.used, one.drop_reason) for one in samples] == [
        (-0.5, True, None),
        (0.5, True, None),
        (None, False, "zero_variance"),
        (None, False, "zero_variance"),
    ]
    assert [one.reason for one in of_type(GroupDropped)] == ["zero_variance"]
    (finished,) = of_type(StepFinished)
    assert (finished.loss, finished.kl_divergence, finished.policy_gradient_norm) == (2.0, 0.1, 3.0)
    assert (finished.reward_mean, finished.num_trajectories, finished.num_tokens) == (0.5, 4, 8)
    assert finished.reward_std == pytest.approx(math.sqrt(0.125))
    assert finished.metrics["env/all/success"] == 0.25
    assert finished.metrics["actor/entropy"] == 1.25
    assert finished.metrics["optim/lr"] == 1e-4


def test_a_turn_has_its_tokens_pictures_and_actions() -> None:
    first, second = png(1), png(2)
    with one_rollout("Open the settings") as rollout:
        rollout.turn(
            screenshot=first,
            screenshot_after=second,
            completion="click",
            prompt_tokens=[1, 2],
            completion_tokens=[3, 4],
            completion_logprobs=[-0.5, None],
            actions=[
                {"type": "click", "x": 1, "y": 2},
                {"tool_name": "search", "tool_args": {"q": "x"}},
            ],
        )
        rollout.turn(
            screenshot=second,
            text="a dialog",
            completion="done",
            prompt_tokens=[1, 2, 3, 4, 5],
            completion_tokens=[6],
            completion_logprobs=[-0.25],
            stop_reason="length",
        )
        rollout.turn(completion="other", prompt_tokens=[9], completion_tokens=[], done=True)
        rollout.finish(reward=1)

    one, two, three = of_type(TurnTaken)
    assert one.text == "Open the settings"
    assert (one.screenshot_width_px, one.screenshot_height_px) == (4, 3)
    assert one.screenshot_before is not None
    assert FolderBlobs(installation().home / "blobs").get(one.screenshot_before) == first
    assert one.screenshot_after == two.screenshot_before
    assert [call.tool_name for call in one.actions] == ["click", "search"]
    assert one.actions[0].action is not None
    assert one.actions[1].action is None
    assert one.tokens is not None
    logprobs = decode_float32(one.tokens.completion_logprobs)
    assert logprobs[0] == -0.5
    assert math.isnan(logprobs[1])
    assert two.text == "a dialog"
    assert two.tokens is not None
    assert (two.tokens.prompt_extends, decode_int32(two.tokens.prompt_tokens)) == (1, [5])
    assert two.tokens.prompt_images == (two.screenshot_before,)
    assert two.tokens.stop_reason == "length"
    assert three.tokens is not None
    assert three.tokens.prompt_extends is None
    assert [turn.episode_done for turn in (one, two, three)] == [False, False, True]
    (finished,) = of_type(RolloutFinished)
    assert (finished.num_turns, finished.num_tokens, finished.num_total_actions) == (3, 3, 2)
    assert finished.summary["num_prompt_tokens"] == 2 + 5 + 1


def test_a_task_is_text_or_an_object_and_is_stated_once() -> None:
    own = OwnTask("own", "Own", "do it", None, None, 2, None, None)
    named = record.Task(task_id="wifi", description="Turn on Wi-Fi", max_steps=3)
    with one_step() as step:
        for task in ("Turn on Wi-Fi", "Turn on Wi-Fi", named, own):
            with step.group(task, num_rollouts=1) as group, group.rollout() as rollout:
                rollout.finish(reward=0)

    stated = [(one.task_id, one.max_steps) for one in of_type(TaskStated)]
    assert stated == [("turn_on_wi_fi_15a64404", 4), ("wifi", 3), ("own", 2)]
    assert [one.max_turns for one in of_type(RolloutCreated)] == [4, 4, 3, 2]


def test_an_attempt_that_failed_is_tried_again_at_its_place() -> None:
    with one_step() as step:
        with step.group("a", num_rollouts=1) as group:
            with group.rollout() as first:
                first.fail("the device hung", "environment_timeout")
            with group.rollout(retry_of=first) as second:
                second.finish(reward=1)
        with step.group("b", num_rollouts=1) as group, group.rollout() as third:
            third.fail("no answer", "policy")

    places = [(one.group_num, one.env_index, one.attempt) for one in of_type(RolloutCreated)]
    assert places == [(0, 0, 0), (0, 0, 1), (1, 0, 0)]
    assert [one.error_type for one in of_type(RolloutFailed)] == ["environment_timeout", "policy"]
    (failed,) = of_type(GroupFailed)
    assert "no rollout ended with a reward" in failed.error_message
    assert of_type(StepFinished)[0].num_trajectories == 1


def test_rollouts_of_a_step_may_be_recorded_from_many_threads() -> None:
    def play(rollout: record.Rollout) -> None:
        for _ in range(3):
            rollout.turn(completion="x")
        rollout.finish(reward=1)

    with (
        one_step(group_size=8) as step,
        step.group("a") as group,
        ThreadPoolExecutor(8) as threads,
    ):
        list(threads.map(play, [group.rollout() for _ in range(8)]))

    assert problems(folded()) == []
    assert of_type(GroupFinished)[0].completed_rollouts == 8


def test_an_evaluation_is_a_baseline_scheduled_or_by_hand_and_has_errors_by_task() -> None:
    def evaluate(training: record.Training) -> None:
        with training.evaluation(num_episodes=4, tasks="two tasks") as evaluation:
            for task in ("a", "b"):
                with evaluation.group(task) as group:
                    for reward in (0, 1):
                        with group.rollout() as rollout:
                            rollout.turn(completion="x")
                            rollout.finish(reward=reward)

    with start_small(num_steps=1) as training:
        evaluate(training)
        take_step(training)
        evaluate(training)
        evaluate(training)

    created = of_type(EvaluationCreated)
    assert [(one.kind, one.step) for one in created] == [
        ("baseline", 0),
        ("scheduled", 1),
        ("manual", 1),
    ]
    for finished in of_type(EvaluationFinished):
        assert (finished.success_rate, finished.completed_tasks, finished.avg_turns) == (0.5, 4, 1)
        assert finished.metrics["counts_by_task"] == {"a_ca978112": [1, 2], "b_3e23e816": [1, 2]}
    assert problems(folded()) == []


def test_an_evaluation_without_a_reward_has_failed() -> None:
    with start_small() as training, training.evaluation(num_episodes=1):
        pass
    assert statuses()["baseline"] == ["failed"]


def test_a_loop_that_ends_early_is_cancelled_and_says_where() -> None:
    with start_small(num_steps=3) as training:
        take_step(training)

    (cancelled,) = of_type(TrainingCancelled)
    assert "after step 1 of 3" in cancelled.status_message
    assert [one.progress.percent for one in of_type(TrainingProgressed)] == [pytest.approx(100 / 3)]
    assert of_type(TrainingCompleted) == []


class BoomError(Exception):
    pass


@pytest.mark.parametrize("error", [BoomError("url https://u:pw@host/x"), KeyboardInterrupt()])
def test_an_error_in_the_loop_ends_everything_that_is_open(error: BaseException) -> None:
    with (  # noqa: PT012  # the whole loop
        pytest.raises(type(error)) as raised,
        start_small() as training,
        training.step() as step,
        step.group("a") as group,
    ):
        other = group.rollout()
        with group.rollout() as rollout:
            rollout.turn(completion="x")
            raise error

    assert raised.value is error
    is_failure = isinstance(error, BoomError)
    assert statuses() == {
        "training": ["failed" if is_failure else "cancelled"],
        "step": ["failed"],
        "group": ["failed"],
        "rollout": ["failed" if is_failure else "cancelled"] * 2,
    }
    assert other.end is not None
    assert problems(folded()) == []
    messages = [one.error_message for one in of_type(RolloutFailed)]
    messages += [one.error_message for one in of_type(StepFailed)]
    assert not any("pw" in message for message in messages)
    assert len(of_type(RolloutCancelled)) == (0 if is_failure else 2)


def test_an_error_that_the_loop_catches_fails_what_it_left_alone() -> None:
    with start_small(num_steps=2) as training:
        with pytest.raises(BoomError), training.step():
            raise BoomError
        take_step(training)

    assert statuses()["step"] == ["completed", "failed"]
    assert statuses()["training"] == ["completed"]


def test_nothing_secret_is_recorded() -> None:
    config = {
        "api_key": "s3cret",
        "HF_TOKEN": "s3cret",
        "nested": [{"dbPassword": "s3cret", "clientSecret": {"value": "s3cret"}}],
        "password": 12345,
        "url": "https://user:s3cret@host/?token=s3cret",
        "max_tokens": 128,
        "tokens_per_step": 9,
        "num_key_value_heads": 4,
        "lr": 1e-4,
        "path": ROOT.parent,
        "nan": math.nan,
    }
    with start_small(config=config):
        pass

    (created,) = of_type(TrainingCreated)
    assert "s3cret" not in created.model_dump_json()
    kept = created.config["config"]
    assert isinstance(kept, dict)
    assert kept["password"] == "***"  # noqa: S105  # what stands for one
    assert (kept["max_tokens"], kept["num_key_value_heads"], kept["lr"]) == (128, 4, 1e-4)
    assert (kept["tokens_per_step"], kept["nan"]) == (9, None)
    assert created.config["recorded_by"] == f"producer.record {record.VERSION}"


def test_numbers_of_numpy_and_torch_are_taken() -> None:
    import numpy as np
    import torch

    with start_small(num_steps=1) as training, training.step() as step:
        with step.group("a", num_rollouts=1) as group, group.rollout() as rollout:
            rollout.turn(
                completion="x",
                prompt_tokens=torch.tensor([1, 2]),
                completion_tokens=np.array([3]),
                completion_logprobs=torch.tensor([-0.5]),
            )
            rollout.finish(reward=np.float32(0.5), success=True)
        step.metrics({"a": np.int64(3), "b": torch.tensor(0.5)}, loss=torch.tensor(1.5))

    (finished,) = of_type(StepFinished)
    assert (finished.loss, finished.metrics["a"], finished.metrics["b"]) == (1.5, 3, 0.5)


def test_a_rollout_that_is_recorded_afterwards_has_its_own_beginning() -> None:
    began = datetime.now(UTC) - timedelta(seconds=30)
    with one_rollout(started_at=began) as rollout:
        rollout.turn(completion="x")
        rollout.finish(reward=0)

    assert of_type(TurnTaken)[0].started_at == began
    assert of_type(RolloutFinished)[0].rollout_time_s >= 30


def test_our_own_trainer_refuses_a_recorded_training_and_record_refuses_ours() -> None:
    from producer.config import read_config
    from producer.training.run import run

    with start_small(name="theirs"):
        pass
    with pytest.raises(UsageError, match=r"was begun by `record\.open`"):
        run(read_config({"training_name": "theirs", "model_name": "oracle", "num_steps": 1}))


def test_recording_imports_no_torch_no_trl_and_no_verl() -> None:
    program = (
        "from producer import record; import sys; print({'torch', 'trl', 'verl', 'transformers',"
        " 'kafka'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "set()\n"

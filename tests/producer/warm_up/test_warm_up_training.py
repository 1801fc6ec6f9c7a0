"""The warm-up is recorded as what it is; the run that needs the policy says what it waits for."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from producer.agents.android.policy.recipe import (
    ImitationPhase,
    WarmUpRecipe,
    warm_up_plan,
    warm_up_steps,
)
from producer.emit import Emitter
from producer.emit.emitter import now_utc
from producer.emit.stream import StreamWriter
from producer.errors import StopRequestedError
from producer.warm_up.training import WarmUpTraining
from schemas import ids
from schemas.catalogue import stream
from schemas.installation import Installation
from schemas.training import TrainingCreated, TrainingInitializing

ReadLog = Callable[[], list[dict[str, Any]]]
SHORT = WarmUpRecipe(
    alignment_steps=2,
    imitation_phases=(
        ImitationPhase(num_steps=1, episodes_per_batch=0, grounding_per_batch=24),
        ImitationPhase(num_steps=1, episodes_per_batch=16, grounding_per_batch=6),
    ),
)


def waiting_training(emitter: Emitter) -> StreamWriter:
    writer = emitter.stream(stream("training", ids.training_id("waiting")))
    recipe = warm_up_plan(SHORT).recipe("demo")
    writer.emit(TrainingCreated(run_name="waiting", recipe=recipe, total_steps=20, config={}))
    writer.emit(TrainingInitializing())
    return writer


def test_it_beats_while_demonstrations_are_drawn_and_not_after_its_end(
    installation: Installation, read_log: ReadLog
) -> None:
    def beats() -> int:
        return sum(event["type"] == "cua.training.heartbeat_sent" for event in read_log())

    with Emitter.open(installation) as emitter:
        with WarmUpTraining(
            *(emitter, now_utc, installation.open_dir, threading.Event()),
            plan=warm_up_plan(SHORT),
            heartbeat_s=0.001,
        ) as warm_up:
            warm_up.on_progress("demo-abc", 0, 4, None)
            deadline = time.monotonic() + 30
            while beats() < 3:
                assert time.monotonic() < deadline
        emitter.flush()
        assert read_log()[-1]["type"] == "cua.training.completed"
        assert "heartbeat" not in {item.name for item in threading.enumerate()}


def test_its_settings_steps_and_losses_are_its_own(
    installation: Installation, read_log: ReadLog
) -> None:
    losses = [9.0, 7.5, 4.25, 0.5]
    with Emitter.open(installation) as emitter:
        waiting = waiting_training(emitter)
        with WarmUpTraining(
            emitter,
            now_utc,
            installation.open_dir,
            threading.Event(),
            waiting=waiting,
            plan=warm_up_plan(SHORT),
        ) as warm_up:
            warm_up.on_progress("demo-abc", 0, 4, None)
            for done, loss in enumerate(losses, start=1):
                warm_up.on_progress("demo-abc", done, 4, loss)
    events = read_log()
    own = [event for event in events if event["subject"] != waiting.subject]
    created = own[0]["data"]
    assert (created["kind"], created["total_steps"]) == ("sft", 4)
    assert created["run_name"].startswith("warm-up-demo-abc-")
    recipe = created["recipe"]
    # 16 demonstrations and 6 grounding sequences; nothing is sampled and nothing compared.
    assert (recipe["batch_size"], recipe["group_size"], recipe["groups_per_batch"]) == (22, 1, 22)
    assert (recipe["learning_rate"], recipe["max_tokens"], recipe["temperature"]) == (3e-3, 0, 0)
    assert (recipe["max_turns"], recipe["seed"], recipe["lora_rank"]) == (16, 0, None)
    assert created["config"]["recipe"]["alignment_learning_rate"] == 5e-3
    finished = [item["data"] for item in own if item["type"] == "cua.step.finished"]
    assert [item["loss"] for item in finished] == losses
    assert {item["reward_mean"] for item in finished} == {None}
    assert [item["metrics"]["train/stage"] for item in finished] == [
        *("alignment", "alignment", "grounding", "imitation")
    ]
    assert [item["metrics"]["train/batch_size"] for item in finished] == [64, 64, 24, 22]
    steps = [item["data"] for item in own if item["type"] == "cua.step.created"]
    assert [step["step"] for step in steps] == [1, 2, 3, 4]
    # A twentieth of the peak at the first step; cos(pi / 2) leaves (1 + 0.05) / 2 at the second.
    assert steps[0]["learning_rate"] == pytest.approx(5e-3 / 20)
    assert steps[1]["learning_rate"] == pytest.approx(5e-3 * 2 / 20 * 0.525)
    assert own[-1]["type"] == "cua.training.completed"
    waited = [event["data"] for event in events if event["subject"] == waiting.subject]
    said = [item["status_message"] for item in waited[2:]]
    assert said == [
        "warm-up of the default policy: 0 %, drawing demonstrations",
        "warm-up of the default policy: 25 %, loss 9.000",
        "warm-up of the default policy: 50 %, loss 7.500",
        "warm-up of the default policy: 75 %, loss 4.250",
        "warm-up of the default policy: 100 %, loss 0.500",
    ]


def test_the_default_warm_up_has_740_steps_in_three_stages() -> None:
    steps = list(warm_up_steps(WarmUpRecipe()))
    assert len(steps) == WarmUpRecipe().num_steps == 740
    stages = [step.stage for step in steps]
    assert [stages.count(item) for item in ("alignment", "grounding", "imitation")] == [
        250,
        140,
        350,
    ]
    assert (steps[269].batch_size, steps[-1].batch_size) == (24, 22)


def test_a_run_that_waits_for_another_process_says_so_and_can_be_stopped(
    installation: Installation, read_log: ReadLog
) -> None:
    stop = threading.Event()
    with Emitter.open(installation) as emitter:
        waiting = waiting_training(emitter)
        with WarmUpTraining(
            emitter, now_utc, installation.open_dir, stop, plan=warm_up_plan(), waiting=waiting
        ) as warm_up:
            for _ in range(3):
                warm_up.on_wait("process 7")
            stop.set()
            with pytest.raises(StopRequestedError):
                warm_up.on_wait("process 7")
    events = read_log()
    assert {event["subject"] for event in events} == {waiting.subject}
    assert [event["data"]["status_message"] for event in events[2:]] == [
        "waiting for process 7, which warms up the default policy"
    ]

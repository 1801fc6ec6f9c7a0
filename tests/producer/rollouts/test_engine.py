"""Many rollouts at once: the events of each, and those whose device dies or hangs."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from producer.emit import Emitter
from producer.environments.environment import Screenshot
from producer.errors import StopRequestedError
from producer.policy.policy import SampleRequest
from producer.rollouts.events import total_prompt_images
from producer.seeds import derived_seed
from producer.task import Task
from schemas.actions import Action, Click, Terminate, Type
from schemas.rollout import RolloutFinished
from schemas.turn import TurnTaken
from tests.producer.rollouts.conftest import DEVICE, ROLLOUT, payloads_of, types_of
from tests.support.engines import make_engine, run_one
from tests.support.scripted import (
    Devices,
    ScriptedEnvironment,
    click_then_stop,
    plan,
)


def turns_of(emitter: Emitter) -> list[TurnTaken]:
    return [payload for payload in payloads_of(emitter, ROLLOUT) if isinstance(payload, TurnTaken)]


def test_a_solved_rollout_is_recorded_from_its_creation_to_its_verdict(
    emitter: Emitter,
) -> None:
    result = run_one(emitter, click_then_stop, ScriptedEnvironment(Devices()))
    assert (result.success, result.num_turns) == (True, 2)
    assert result.reward == pytest.approx(1.0 - 2 * 0.02)
    assert types_of(emitter, ROLLOUT) == [
        "rollout.created",
        "rollout.environment_requested",
        "rollout.agent_initialized",
        "rollout.started",
        "rollout.turn_taken",
        "rollout.turn_taken",
        "rollout.phase_entered",
        "validation.recorded",
        "rollout.finished",
    ]
    assert types_of(emitter, DEVICE) == [
        "environment.requested",
        "environment.creation_started",
        "environment.started",
        "environment.terminated",
    ]


def test_screenshots_of_a_turn_are_in_the_blob_store_before_and_after(
    emitter: Emitter, tmp_path: Path
) -> None:
    run_one(emitter, click_then_stop, ScriptedEnvironment(Devices()))
    turns = turns_of(emitter)
    assert turns[0].screenshot_after == turns[1].screenshot_before != turns[0].screenshot_before
    stored = {path.name for path in (tmp_path / "blobs").rglob("*") if path.is_file()}
    digests = {
        ref.rpartition(":")[2]
        for turn in turns
        for ref in (turn.screenshot_before, turn.screenshot_after)
        if ref
    }
    assert {
        digest for digest in digests if any(digest.endswith(name) for name in stored)
    } == digests


def test_running_out_of_turns_is_an_outcome_that_is_judged(emitter: Emitter) -> None:
    result = run_one(emitter, lambda _request: Click(x=1, y=1), ScriptedEnvironment(Devices()))
    assert (result.success, result.num_turns) == (True, 4)
    payload = payloads_of(emitter, ROLLOUT)[-1]
    assert isinstance(payload, RolloutFinished)
    assert (payload.ran_out_of_turns, payload.task_completed, payload.agent_reported_success) == (
        True,
        False,
        None,
    )
    assert payload.consecutive_repeated_actions == 3


def test_actions_that_cannot_be_parsed_or_done_are_counted_and_cost(emitter: Emitter) -> None:
    actions: list[Action | None] = [None, Type(text="x"), Terminate()]
    result = run_one(
        emitter, lambda request: actions[len(request.history)], ScriptedEnvironment(Devices())
    )
    assert not result.success
    assert result.reward == pytest.approx(-3 * 0.02 - 0.1)
    payload = payloads_of(emitter, ROLLOUT)[-1]
    assert isinstance(payload, RolloutFinished)
    assert (payload.parse_errors, payload.runtime_errors, payload.num_total_actions) == (1, 1, 3)


@pytest.mark.parametrize("environment", [{"fails_to_open": True}, {"fails_at": 1}])
def test_a_device_that_dies_is_a_failed_attempt_and_never_a_reward_of_zero(
    emitter: Emitter, environment: dict[str, bool]
) -> None:
    result = run_one(emitter, click_then_stop, ScriptedEnvironment(Devices(), **environment))
    assert result.failure is not None
    assert result.failure.error_type == "environment"
    assert not result.is_scored
    assert types_of(emitter, ROLLOUT)[-1] == "rollout.failed"
    assert types_of(emitter, DEVICE)[-1] == "environment.failed"


def test_a_device_that_hangs_is_given_up_while_the_others_go_on(emitter: Emitter) -> None:
    hanging = ScriptedEnvironment(Devices(), hangs_at=1)
    engine, _ = make_engine(
        emitter,
        click_then_stop,
        lambda plan: hanging if plan.env_index == 1 else ScriptedEnvironment(Devices()),
        turn_time_s=3.0,  # of the healthy ones too
    )
    for index in range(3):
        engine.submit(plan(index))
    results = {result.plan.env_index: result for result in engine.run()}
    assert [results[index].is_scored for index in range(3)] == [True, False, True]
    assert results[1].failure is not None
    assert results[1].failure.error_type == "environment_timeout"
    hanging.released.set()


def test_no_more_devices_exist_at_once_than_allowed_and_every_plan_has_one_result(
    emitter: Emitter,
) -> None:
    devices = Devices()
    engine, policy = make_engine(
        emitter, click_then_stop, lambda _plan: ScriptedEnvironment(devices), max_concurrent=3
    )
    for index in range(10):
        engine.submit(plan(index))
    results = sorted(result.plan.env_index for result in engine.run())
    assert results == list(range(10))
    assert devices.most <= 3
    assert devices.open_now == 0
    assert max(len(batch) for batch in policy.batches) > 1
    assert len(policy.forgotten) == 10


def test_a_retry_added_between_results_runs(emitter: Emitter) -> None:
    devices = Devices()
    engine, _ = make_engine(
        emitter,
        click_then_stop,
        lambda plan: ScriptedEnvironment(devices, fails_at=1 - plan.attempt),
    )
    engine.submit(plan(0))
    scored = []
    for result in engine.run():
        scored.append((result.plan.attempt, result.is_scored))
        if not result.is_scored:
            engine.submit(replace(plan(0, attempt=1)), first=True)
    assert scored == [(0, False), (1, True)]


def test_a_stop_cancels_rollouts_under_way_and_records_it(emitter: Emitter) -> None:
    stop = threading.Event()

    def check() -> None:
        if stop.is_set():
            raise StopRequestedError

    def decide(_request: SampleRequest) -> Action:
        stop.set()
        return Click(x=1, y=1)

    engine, _ = make_engine(
        emitter, decide, lambda _plan: ScriptedEnvironment(Devices()), check_stop=check
    )
    engine.submit(plan(0))
    with pytest.raises(StopRequestedError):
        list(engine.run())
    assert types_of(emitter, ROLLOUT)[-1] == "rollout.cancelled"
    assert types_of(emitter, DEVICE)[-1] == "environment.terminated"


def test_a_batch_is_in_the_order_of_places_whichever_device_answers_first(
    emitter: Emitter,
) -> None:
    opened = [threading.Event() for _ in range(4)]

    class InReverse(ScriptedEnvironment):
        def __init__(self, index: int) -> None:
            super().__init__(Devices())
            self.index = index

        def open(self, task: Task, seed: int) -> Screenshot:
            if self.index < 3:
                assert opened[self.index + 1].wait(10.0)
            opened[self.index].set()
            return super().open(task, seed)

    engine, policy = make_engine(emitter, click_then_stop, lambda plan: InReverse(plan.env_index))
    for index in (2, 0, 3, 1):
        engine.submit(plan(index))
    list(engine.run())
    places = {plan(index).id: index for index in range(4)}
    for batch in policy.batches:
        assert [places[episode] for episode in batch] == sorted(places[each] for each in batch)


def test_a_turn_records_its_seed_the_size_of_the_screen_and_the_images_that_it_adds(
    emitter: Emitter,
) -> None:
    requests: list[SampleRequest] = []

    def decide(request: SampleRequest) -> Action:
        requests.append(request)
        return Click(x=1, y=1)

    run_one(emitter, decide, ScriptedEnvironment(Devices()), has_tokens=True)
    turns = turns_of(emitter)
    assert [(turn.screenshot_width_px, turn.screenshot_height_px) for turn in turns] == [
        (32, 48)
    ] * 4
    records = [turn.tokens for turn in turns if turn.tokens is not None]
    assert [record.prompt_extends for record in records] == [None, 1, 2, 3]
    assert [record.prompt_images for record in records] == [
        (turn.screenshot_before,) for turn in turns
    ]
    assert [record.sampling.seed for record in records] == [
        derived_seed(0, turn) for turn in (1, 2, 3, 4)
    ]
    assert [record.sampling.seed for record in records] == [request.seed for request in requests]
    assert total_prompt_images(turns) == {1: 1, 2: 2, 3: 3, 4: 4}

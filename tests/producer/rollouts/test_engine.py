"""Many rollouts at once: what is said of each, and what happens to those whose device dies or hangs."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from producer.emit import Emitter
from producer.environments.environment import Environment
from producer.errors import StopRequestedError
from producer.policy.policy import SampleRequest
from producer.rollouts.engine import RolloutEngine
from producer.rollouts.episode import EpisodeSettings
from producer.rollouts.plan import RolloutPlan, RolloutResult, RolloutSource
from producer.tasks.statements import task_facts
from schemas import ids
from schemas.actions import Action, Click, Terminate, Type
from schemas.catalogue import stream
from schemas.installation import read_installation
from schemas.rollout import RolloutFinished
from schemas.turn import TurnTaken
from tests.producer.rollouts.doubles import (
    WIFI,
    Devices,
    ScriptedEnvironment,
    ScriptedPolicy,
    click_then_stop,
)

TRAINING = ids.training_id("t")
STEP = ids.step_id(TRAINING, 0, 1)
SOURCE = RolloutSource("step", STEP, "step-1", 0, 0, stream("training", TRAINING))


@pytest.fixture
def emitter(tmp_path: Path) -> Iterator[Emitter]:
    with Emitter.open(read_installation({"CUA_HOME": str(tmp_path)})) as opened:
        yield opened


def plan(index: int, attempt: int = 0) -> RolloutPlan:
    stated, validator = task_facts(WIFI)
    name = ids.rollout_name("t", 0, "step-1", 0, index, attempt)
    return RolloutPlan(
        name=name,
        id=ids.rollout_id(name),
        source=SOURCE,
        group_id=ids.group_id(STEP, 0),
        group_num=0,
        env_index=index,
        attempt=attempt,
        task=WIFI,
        task_row_id=stated.id,
        validator_row_id=validator.id if validator else None,
        max_turns=4,
        temperature=1.0,
        seed=7,
        sampling_seed=index,
    )


def make_engine(
    emitter: Emitter,
    decide: Callable[[SampleRequest], Action | None],
    make: Callable[[RolloutPlan], Environment],
    *,
    max_concurrent: int = 8,
    turn_time_s: float = 30.0,
    check_stop: Callable[[], None] = lambda: None,
) -> tuple[RolloutEngine, ScriptedPolicy]:
    policy = ScriptedPolicy(decide)
    engine = RolloutEngine(
        policy=policy,
        make_environment=make,
        settings=EpisodeSettings(
            TRAINING, 12, 1800.0, turn_time_s, turn_cost=0.02, parse_error_cost=0.1
        ),
        max_concurrent=max_concurrent,
        emitter=emitter,
        clock=lambda: datetime.now(UTC),
        on_begin=lambda _plan: None,
        check_stop=check_stop,
    )
    return engine, policy


def types_of(emitter: Emitter, subject: str) -> list[str]:
    emitter.flush()
    return [
        event.envelope.type.removeprefix("cua.")
        for event in emitter.log.read_back(subject, {}).events
    ]


def run_one(
    emitter: Emitter, decide: Callable[[SampleRequest], Action | None], environment: Environment
) -> RolloutResult:
    engine, _ = make_engine(emitter, decide, lambda _plan: environment)
    engine.submit(plan(0))
    (result,) = engine.run()
    return result


def test_a_solved_rollout_says_everything_from_its_creation_to_its_verdict(
    emitter: Emitter,
) -> None:
    result = run_one(emitter, click_then_stop, ScriptedEnvironment(Devices()))
    assert (result.status, result.success, result.num_turns) == ("completed", True, 2)
    assert result.reward == pytest.approx(1.0 - 2 * 0.02)
    assert types_of(emitter, stream("rollout", plan(0).id)) == [
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
    assert types_of(emitter, stream("environment", ids.environment_id(plan(0).id))) == [
        "environment.requested",
        "environment.creation_started",
        "environment.started",
        "environment.terminated",
    ]


def test_screenshots_of_a_turn_are_in_the_blob_store_before_and_after(
    emitter: Emitter, tmp_path: Path
) -> None:
    run_one(emitter, click_then_stop, ScriptedEnvironment(Devices()))
    emitter.flush()
    events = emitter.log.read_back(stream("rollout", plan(0).id), {}).events
    turns = [event.payload for event in events if isinstance(event.payload, TurnTaken)]
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
    assert (result.status, result.success, result.num_turns) == ("completed", True, 4)
    emitter.flush()
    payload = emitter.log.read_back(stream("rollout", plan(0).id), {}).events[-1].payload
    assert isinstance(payload, RolloutFinished)
    assert (payload.ran_out_of_turns, payload.task_completed, payload.agent_reported_success) == (
        True,
        False,
        None,
    )
    assert payload.consecutive_repeated_actions == 3


def test_what_cannot_be_understood_or_done_is_counted_and_costs(emitter: Emitter) -> None:
    said: list[Action | None] = [None, Type(text="x"), Terminate()]
    result = run_one(
        emitter, lambda request: said[len(request.history)], ScriptedEnvironment(Devices())
    )
    assert not result.success
    assert result.reward == pytest.approx(-3 * 0.02 - 0.1)
    emitter.flush()
    payload = emitter.log.read_back(stream("rollout", plan(0).id), {}).events[-1].payload
    assert isinstance(payload, RolloutFinished)
    assert (payload.parse_errors, payload.runtime_errors, payload.num_total_actions) == (1, 1, 3)


@pytest.mark.parametrize("environment", [{"fails_to_open": True}, {"fails_at": 1}])
def test_a_device_that_dies_is_a_failed_attempt_and_never_a_reward_of_zero(
    emitter: Emitter, environment: dict[str, bool]
) -> None:
    result = run_one(emitter, click_then_stop, ScriptedEnvironment(Devices(), **environment))
    assert (result.status, result.is_scored, result.error_type) == ("failed", False, "environment")
    assert types_of(emitter, stream("rollout", plan(0).id))[-1] == "rollout.failed"
    assert (
        types_of(emitter, stream("environment", ids.environment_id(plan(0).id)))[-1]
        == "environment.failed"
    )


def test_a_device_that_hangs_is_given_up_while_the_others_go_on(emitter: Emitter) -> None:
    devices = Devices()
    engine, _ = make_engine(
        emitter,
        click_then_stop,
        lambda plan: ScriptedEnvironment(devices, hangs_at=1 if plan.env_index == 1 else 0),
        turn_time_s=0.3,
    )
    for index in range(3):
        engine.submit(plan(index))
    results = {result.plan.env_index: result for result in engine.run()}
    assert [results[index].status for index in range(3)] == ["completed", "failed", "completed"]
    assert results[1].error_type == "environment_timeout"


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
    assert max(policy.batches) > 1
    assert len(policy.forgotten) == 10


def test_a_retry_added_between_results_runs(emitter: Emitter) -> None:
    devices = Devices()
    engine, _ = make_engine(
        emitter,
        click_then_stop,
        lambda plan: ScriptedEnvironment(devices, fails_at=1 - plan.attempt),
    )
    engine.submit(plan(0))
    statuses = []
    for result in engine.run():
        statuses.append((result.plan.attempt, result.status))
        if not result.is_scored:
            engine.submit(replace(plan(0, attempt=1)), first=True)
    assert statuses == [(0, "failed"), (1, "completed")]


def test_a_stop_cancels_what_is_under_way_and_says_so(emitter: Emitter) -> None:
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
    assert types_of(emitter, stream("rollout", plan(0).id))[-1] == "rollout.cancelled"
    assert (
        types_of(emitter, stream("environment", ids.environment_id(plan(0).id)))[-1]
        == "environment.terminated"
    )

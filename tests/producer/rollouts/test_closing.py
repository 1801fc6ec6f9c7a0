"""How devices end: once, before the result, or named as a leak."""

from datetime import UTC, datetime

import pytest

from producer.emit import Emitter
from producer.errors import StopRequestedError
from producer.policy.policy import SampleRequest
from producer.rollouts.devices import LeftDevices
from producer.rollouts.engine import RolloutEngine
from producer.rollouts.plan import RolloutPlan
from schemas.actions import Action, Click, Terminate
from schemas.catalogue import stream
from tests.producer.rollouts.conftest import DEVICE, ROLLOUT, types_of
from tests.support.engines import join_worker, make_engine, run_one
from tests.support.scripted import (
    SETTINGS,
    Devices,
    ScriptedEnvironment,
    ScriptedPolicy,
    click_then_stop,
    plan,
)


@pytest.mark.parametrize(
    "environment", [{}, {"fails_to_open": True}, {"fails_at": 1}], ids=["ends", "unopened", "dies"]
)
def test_an_environment_is_closed_exactly_once_before_the_result(
    emitter: Emitter, environment: dict[str, bool]
) -> None:
    device = ScriptedEnvironment(Devices(), **environment)
    run_one(emitter, click_then_stop, device)
    assert device.num_closes == 1
    join_worker(plan(0))
    assert device.num_closes == 1


def test_a_dead_device_is_gone_before_the_retry_opens_another(emitter: Emitter) -> None:
    devices = Devices()
    engine, _ = make_engine(
        emitter,
        click_then_stop,
        lambda plan: ScriptedEnvironment(devices, fails_at=1 - plan.attempt),
        max_concurrent=1,
    )
    engine.submit(plan(0))
    engine.submit(plan(1))
    for result in engine.run():
        if not result.is_scored:
            engine.submit(plan(result.plan.env_index, attempt=1), first=True)
    assert (devices.most, devices.open_now) == (1, 0)


def test_a_hung_device_is_named_as_a_leak_and_its_late_end_is_recorded_when_it_has_ended(
    emitter: Emitter,
) -> None:
    device = ScriptedEnvironment(Devices(), hangs_at=1)
    engine, _ = make_engine(emitter, click_then_stop, lambda _plan: device, turn_time_s=0.2)
    engine.submit(plan(0))
    (result,) = engine.run()
    assert result.failure is not None
    assert result.failure.error_type == "environment_timeout"
    assert device.num_closes == 0
    before = types_of(emitter, ROLLOUT)
    assert (before[-1], types_of(emitter, DEVICE)[-1]) == ("rollout.failed", "environment.leaked")

    device.released.set()
    join_worker(plan(0))

    assert device.num_closes == 1
    assert types_of(emitter, ROLLOUT) == before
    assert types_of(emitter, DEVICE)[-2:] == ["environment.leaked", "environment.released"]


@pytest.mark.parametrize("hangs", [True, False])
def test_a_device_that_does_not_close_when_a_run_is_stopped_is_a_leak_and_named(
    emitter: Emitter,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    *,
    hangs: bool,
) -> None:
    monkeypatch.setattr("producer.rollouts.engine.CLOSE_GRACE_S", 0.3)
    device = ScriptedEnvironment(Devices(), hangs_at=1 if hangs else 0)
    left = LeftDevices()
    policy = ScriptedPolicy(lambda _request: Click(x=1, y=1))
    asked = 0

    def check_stop() -> None:
        nonlocal asked
        asked += 1
        if asked > 2:
            raise StopRequestedError

    engine = RolloutEngine(
        policy=policy,
        make_environment=lambda _plan: device,
        settings=SETTINGS,
        max_concurrent=1,
        emitter=emitter,
        clock=lambda: datetime.now(UTC),
        on_begin=lambda _plan: None,
        check_stop=check_stop,
        left_devices=left,
    )
    engine.submit(plan(0))
    with pytest.raises(StopRequestedError):
        list(engine.run())
    left.seal()
    expected = "environment.leaked" if hangs else "environment.terminated"
    assert types_of(emitter, DEVICE)[-1] == expected
    assert left.num_leaked == int(hangs)
    assert ("scripted-1" in caplog.text) == hangs
    device.released.set()
    join_worker(plan(0))
    assert device.num_closes == 1
    assert types_of(emitter, DEVICE)[-1] == expected


def test_closing_the_run_early_cancels_and_closes_every_device_exactly_once(
    emitter: Emitter,
) -> None:
    devices: dict[int, ScriptedEnvironment] = {}

    def make(plan: RolloutPlan) -> ScriptedEnvironment:
        # The first ends, the second is in the middle of an action, the third has just begun.
        devices[plan.env_index] = ScriptedEnvironment(
            Devices(), hangs_at=1 if plan.env_index == 1 else 0
        )
        return devices[plan.env_index]

    def decide(request: SampleRequest) -> Action:
        return Terminate() if request.episode == plan(0).id else Click(x=1, y=1)

    engine, policy = make_engine(emitter, decide, make)
    for index in range(3):
        engine.submit(plan(index))
    results = engine.run()
    assert next(results).plan.env_index == 0
    results.close()
    devices[1].released.set()
    for index in range(3):
        join_worker(plan(index))
    assert [devices[index].num_closes for index in range(3)] == [1, 1, 1]
    assert sorted(policy.forgotten) == sorted(plan(index).id for index in range(3))
    for index in (1, 2):
        assert types_of(emitter, stream("rollout", plan(index).id))[-1] == "rollout.cancelled"
    results.close()
    assert [devices[index].num_closes for index in range(3)] == [1, 1, 1]

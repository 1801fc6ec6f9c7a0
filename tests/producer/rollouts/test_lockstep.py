"""Batches on simulated devices follow from the plans; nobody waits for a slow real device."""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from random import Random

import pytest

from producer.emit import Emitter
from producer.environments.environment import Environment, Screenshot
from producer.errors import StopRequestedError
from producer.policy.policy import SampleRequest
from producer.rollouts.engine import RolloutEngine
from producer.rollouts.plan import RolloutPlan
from producer.seeds import derived_seed
from schemas.actions import Action, Click, Terminate
from schemas.installation import read_installation
from tests.support.scripted import SETTINGS, Devices, ScriptedEnvironment, ScriptedPolicy, plan

WAIT_S = 0.2
"""Several times the 50 ms for which a batch waits for a real device."""


class Slow(ScriptedEnvironment):
    """Answers after `delay()` seconds."""

    def __init__(
        self, delay: Callable[[], float], *, is_simulated: bool, fails_at: int = 0
    ) -> None:
        super().__init__(Devices(), is_simulated=is_simulated, fails_at=fails_at)
        self._delay = delay

    def act(self, action: Action) -> Screenshot:
        time.sleep(self._delay())
        return super().act(action)


def length_of(index: int) -> int:
    """Turns of the first attempt at a place, by its seeds; at most the plan's 4."""
    own = plan(index).sampling_seed
    return next((turn for turn in (1, 2, 3) if derived_seed(own, turn) % 4 == 0), 4)


def length_by_place(request: SampleRequest) -> Action:
    """Episodes end after 1 to 4 turns, by their seeds."""
    return Terminate() if request.seed % 4 == 0 else Click(x=1, y=1)


def engine_of(
    emitter: Emitter,
    policy: ScriptedPolicy,
    make: Callable[[RolloutPlan], Environment],
    *,
    max_concurrent: int = 8,
    check_stop: Callable[[], None] = lambda: None,
) -> RolloutEngine:
    return RolloutEngine(
        policy=policy,
        make_environment=make,
        settings=SETTINGS,
        max_concurrent=max_concurrent,
        emitter=emitter,
        clock=lambda: datetime.now(UTC),
        on_begin=lambda _plan: None,
        check_stop=check_stop,
    )


def places_of_batches(
    home: Path, delay: Callable[[], float]
) -> tuple[list[list[tuple[int, int]]], list[tuple[int, int]]]:
    """Places (index, attempt) of each batch, and of the results; every third device dies first."""
    policy = ScriptedPolicy(length_by_place)

    def make(made: RolloutPlan) -> Slow:
        dies = made.env_index % 3 == 0 and made.attempt == 0
        return Slow(delay, is_simulated=True, fails_at=1 if dies else 0)

    ended = []
    with Emitter.open(read_installation({"CUA_HOME": str(home)})) as emitter:
        engine = engine_of(emitter, policy, make, max_concurrent=4)
        for index in range(12):
            engine.submit(plan(index))
        for result in engine.run():
            ended.append((result.plan.env_index, result.plan.attempt))
            if not result.is_scored:
                engine.submit(plan(result.plan.env_index, attempt=1), first=True)
    place = {plan(*each).id: each for each in product(range(12), range(2))}
    return [[place[episode] for episode in batch] for batch in policy.batches], ended


def test_batches_retries_and_results_are_the_same_however_long_each_device_takes(
    tmp_path: Path,
) -> None:
    random = Random(0)
    at_once = places_of_batches(tmp_path / "at-once", lambda: 0.0)
    jittered = places_of_batches(tmp_path / "jittered", lambda: random.choice([0.0, 0.0, WAIT_S]))
    assert at_once == jittered
    assert len(at_once[1]) == 12 + 4 - sum(length_of(index) == 1 for index in (0, 3, 6, 9))


@pytest.mark.parametrize(("is_simulated", "sizes"), [(True, [3, 3, 3, 3]), (False, [3, 2, 2, 2])])
def test_a_slow_simulator_is_waited_for_and_a_slow_real_device_is_not(
    emitter: Emitter, monkeypatch: pytest.MonkeyPatch, *, is_simulated: bool, sizes: list[int]
) -> None:
    """Four turns of three episodes; one device takes longer than a batch waits for real ones."""
    if not is_simulated:
        # The others' threads may take longer than 50 ms to answer at once.
        monkeypatch.setattr("producer.rollouts.engine.BATCH_WAIT_S", 1.0)
    others_done = threading.Event()
    policy = ScriptedPolicy(lambda _request: Click(x=1, y=1))

    def make(made: RolloutPlan) -> Slow:
        def delay() -> float:
            if made.env_index == 0 and not is_simulated:
                assert others_done.wait(20.0)
                return 0.0
            return WAIT_S if made.env_index == 0 else 0.0

        return Slow(delay, is_simulated=is_simulated)

    engine = engine_of(emitter, policy, make)
    for index in range(3):
        engine.submit(plan(index))
    for result in engine.run():
        if result.plan.env_index == 2:
            others_done.set()
    assert [len(batch) for batch in policy.batches][: len(sizes)] == sizes


def test_a_request_to_stop_is_noticed_while_a_device_keeps_everybody_waiting(
    emitter: Emitter,
) -> None:
    begun_s = time.monotonic()
    device = ScriptedEnvironment(Devices(), is_simulated=True, hangs_at=1)

    def check_stop() -> None:
        if time.monotonic() > begun_s + 0.5:
            raise StopRequestedError

    engine = engine_of(
        emitter,
        ScriptedPolicy(lambda _request: Click(x=1, y=1)),
        lambda _plan: device,
        check_stop=check_stop,
    )
    engine.submit(plan(0))
    with pytest.raises(StopRequestedError):
        list(engine.run())
    assert time.monotonic() - begun_s < SETTINGS.max_turn_time_seconds / 2
    device.released.set()

"""Rollouts on real devices that fail now and then: attempts are kept, none is scored for it."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import psutil
import pytest

from producer.agents.adb.environment import AdbEnvironment
from producer.agents.adb.server import AdbServer
from producer.agents.desktop.environment import DesktopEnvironment
from producer.agents.desktop.tasks import desktop_task
from producer.agents.gbox.environment import GboxEnvironment
from producer.emit import Emitter
from producer.environments.environment import Environment, Screenshot
from producer.policy.policy import SampleRequest
from producer.rollouts.plan import RolloutResult
from schemas.actions import Action, SystemButton, Terminate, Wait
from schemas.catalogue import stream
from schemas.installation import read_installation
from schemas.rollout import RolloutFailed, RolloutFinished
from tests.support.adb_server import adb_server
from tests.support.engines import make_engine
from tests.support.gbox_server import KEY, gbox_server, service_of
from tests.support.scripted import plan

NUM_ROLLOUTS = 20
FAILING = 0.05
Make = Callable[[], Environment]


@pytest.fixture
def emitter(tmp_path: Path) -> Iterator[Emitter]:
    with Emitter.open(read_installation({"CUA_HOME": str(tmp_path)})) as opened:
        yield opened


@pytest.fixture
def phones() -> Iterator[Make]:
    """Two, of which one goes offline after some episodes."""
    with adb_server("one", "two") as server:
        for phone in server.phones.values():
            phone.failing = FAILING
        server.phones["one"].goes_after = 40
        yield lambda: AdbEnvironment(AdbServer(server.address), ("one", "two"))


@pytest.fixture
def boxes() -> Iterator[Make]:
    with gbox_server() as server:
        server.failing = FAILING
        with service_of(server) as service:
            yield lambda: GboxEnvironment(service, "android", training="t", lifetime_s=60.0)
        assert server.alive == []
        assert server.most_alive <= 2


class DyingDesktop(DesktopEnvironment):
    """Its display is killed now and then."""

    random = Random(3)

    def act(self, action: Action) -> Screenshot:
        if self.random.random() < FAILING:
            for process in psutil.Process(self.session.pid).children(recursive=True):
                with suppress(psutil.NoSuchProcess):  # others of them come and go
                    if process.name() == "Xvfb":
                        process.kill()
                        process.wait(10)
        return super().act(action)


@pytest.fixture
def desktops(desktop_programs: None) -> Make:  # noqa: ARG001  # skips without them
    return DyingDesktop


def home_then_stop(request: SampleRequest) -> Action:
    return SystemButton(button="home") if not request.history else Terminate()


def wait_then_stop(request: SampleRequest) -> Action:
    return Wait(duration_s=0) if not request.history else Terminate()


@pytest.mark.parametrize("kind", ["phones", "boxes", "desktops"])
def test_a_device_that_fails_costs_an_attempt_and_never_a_reward(
    kind: str, emitter: Emitter, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    make: Make = request.getfixturevalue(kind)
    task = desktop_task("write-note") if kind == "desktops" else None
    decide = wait_then_stop if kind == "desktops" else home_then_stop
    engine, _ = make_engine(emitter, decide, lambda _plan: make(), max_concurrent=2)
    for index in range(NUM_ROLLOUTS):
        engine.submit(plan(index, task=task))
    results: list[RolloutResult] = []
    for result in engine.run():
        results.append(result)
        if not result.is_scored:
            engine.submit(plan(result.plan.env_index, result.plan.attempt + 1, task), first=True)
    failed = [result.failure for result in results if result.failure is not None]
    assert failed
    assert {failure.error_type for failure in failed} == {"environment"}
    done = sorted(result.plan.env_index for result in results if result.is_scored)
    assert done == list(range(NUM_ROLLOUTS))
    emitter.flush()
    for result in results:
        subject = stream("rollout", result.plan.id)
        last = emitter.log.read_back(subject, {}).events[-1].payload
        kind_of_end = RolloutFinished if result.is_scored else RolloutFailed
        assert isinstance(last, kind_of_end)
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert KEY.encode() not in written

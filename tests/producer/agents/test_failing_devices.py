"""Rollouts on real devices that fail now and then: attempts are kept, none is scored for it."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import ClassVar, NamedTuple

import psutil
import pytest
from openenv.core.env_server.http_server import create_fastapi_app

from producer.agents.adb.environment import AdbEnvironment
from producer.agents.adb.server import AdbServer
from producer.agents.desktop.environment import DesktopEnvironment
from producer.agents.desktop.tasks import desktop_task
from producer.agents.gbox.environment import GboxEnvironment
from producer.agents.miniwob.browsers import Browsers
from producer.agents.miniwob.environment import MiniWobEnvironment
from producer.agents.miniwob.pages import web_pages
from producer.agents.miniwob.tasks import page_task
from producer.agents.openenv.environment import OpenEnvEnvironment
from producer.agents.openenv.mappings import MAPPINGS
from producer.emit import Emitter
from producer.environments.environment import Environment, Screenshot
from producer.policy.policy import SampleRequest
from producer.rollouts.plan import RolloutResult
from producer.task import Task
from producer.tasks.sources import load_tasks
from schemas.actions import Action, SystemButton, Terminate, Type, Wait
from schemas.catalogue import stream
from schemas.installation import read_installation
from schemas.rollout import RolloutFailed, RolloutFinished
from tests.support.adb_server import adb_server
from tests.support.engines import make_engine
from tests.support.env_servers import served_here
from tests.support.foreign_env import EchoEnvironment, Heard, Said
from tests.support.gbox_server import KEY, gbox_server, service_of
from tests.support.scripted import plan

NUM_ROLLOUTS = 8
FAILING = 0.15
AT_ONCE = 2


class Devices(NamedTuple):
    """Devices of which some fail now and then."""

    make: Callable[[], Environment]
    task: Task | None = None
    """None: one of phones."""
    action: Action = SystemButton(button="home")
    """The first one; then the agent stops."""


@pytest.fixture
def emitter(tmp_path: Path) -> Iterator[Emitter]:
    with Emitter.open(read_installation({"CUA_HOME": str(tmp_path)})) as opened:
        yield opened


@pytest.fixture
def phones() -> Iterator[Devices]:
    """Two, of which one goes offline after some episodes."""
    with adb_server("one", "two") as server:
        for phone in server.phones.values():
            phone.failing = FAILING
        server.phones["one"].goes_after = 20
        yield Devices(lambda: AdbEnvironment(AdbServer(server.address), ("one", "two")))


@pytest.fixture
def boxes() -> Iterator[Devices]:
    with gbox_server() as server:
        server.failing = FAILING
        with service_of(server) as service:
            yield Devices(
                lambda: GboxEnvironment(service, "android", training="t", lifetime_s=60.0)
            )
        assert server.alive == []
        assert server.most_alive <= AT_ONCE


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
def desktops(desktop_programs: None) -> Devices:  # noqa: ARG001  # skips without them
    return Devices(DyingDesktop, desktop_task("write-note"), Wait(duration_s=0))


class DyingPage(MiniWobEnvironment):
    """Its browser is killed now and then, with every page in it."""

    browsers: ClassVar[Browsers]
    random = Random(3)

    def act(self, action: Action) -> Screenshot:
        if self.random.random() < FAILING:
            for pid in self.browsers.pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        return super().act(action)


@pytest.fixture
def pages(chromium: None) -> Iterator[Devices]:  # noqa: ARG001  # skips without it
    browsers = DyingPage.browsers = Browsers()
    task = page_task(web_pages()["enter-text"])
    yield Devices(lambda: DyingPage(browsers), task, Wait(duration_s=0))
    assert browsers.num_open == 0
    browsers.stop()


class FailingEcho(EchoEnvironment):
    """Its server fails now and then."""

    random = Random(3)

    def step(self, action: Said, timeout_s: float | None = None) -> Heard:
        if self.random.random() < FAILING:
            raise RuntimeError(action.message)
        return super().step(action, timeout_s)


@pytest.fixture
def sessions() -> Iterator[Devices]:
    app = create_fastapi_app(FailingEcho, Said, Heard, max_concurrent_envs=AT_ONCE)
    (task,) = load_tasks({"source_type": "openenv"})
    with served_here(app) as url:
        yield Devices(
            lambda: OpenEnvEnvironment([url], MAPPINGS["text"], None, 10.0), task, Type(text="win")
        )


@pytest.mark.parametrize("kind", ["phones", "boxes", "desktops", "pages", "sessions"])
def test_a_device_that_fails_costs_an_attempt_and_never_a_reward(
    kind: str, emitter: Emitter, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    devices: Devices = request.getfixturevalue(kind)

    def decide(asked: SampleRequest) -> Action:
        return Terminate() if asked.history else devices.action

    engine, _ = make_engine(emitter, decide, lambda _plan: devices.make(), max_concurrent=AT_ONCE)
    for index in range(NUM_ROLLOUTS):
        engine.submit(plan(index, task=devices.task))
    results: list[RolloutResult] = []
    for result in engine.run():
        results.append(result)
        if not result.is_scored:
            again = plan(result.plan.env_index, result.plan.attempt + 1, devices.task)
            engine.submit(again, first=True)
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

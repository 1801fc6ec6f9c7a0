"""Real devices of a killed process: closed by whoever continues, where their provider lets it."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from producer.emit import Emitter
from producer.resume.orphans import close_orphans
from producer.resume.training_history import TrainingHistory
from schemas import ids
from schemas.base import Payload
from schemas.catalogue import stream
from schemas.environment import (
    EnvironmentCreationStarted,
    EnvironmentLeaked,
    EnvironmentRequested,
    EnvironmentStarted,
    EnvironmentTerminated,
)
from schemas.installation import Installation
from tests.support.gbox_server import KEY, FakeGbox, gbox_server

DEVICE = stream("environment", ids.environment_id(ids.rollout_id("r")))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGbox]:
    with gbox_server() as made:
        monkeypatch.setenv("GBOX_API_KEY", KEY)
        monkeypatch.setenv("GBOX_CLIENT_BASE_URL", made.url)
        made.create("android", {})
        yield made


def ended(installation: Installation, env_type: str, device_id: str | None) -> Payload:
    """The last event of a device whose process died while it used `device_id`."""
    config = {"seed": 1, "is_simulated": False}
    with Emitter.open(installation) as emitter:
        writer = emitter.stream(DEVICE)
        writer.emit(EnvironmentRequested(env_type=env_type, box_type="android", config=config))
        writer.emit(EnvironmentCreationStarted())
        if device_id is not None:
            writer.emit(EnvironmentStarted(gbox_id=device_id, started_at=datetime.now(UTC)))
        emitter.flush()
        history = emitter.log.read_back(DEVICE, {})
    with Emitter.open(installation) as emitter:
        close_orphans(TrainingHistory({DEVICE: history}), emitter, None, lambda: datetime.now(UTC))
        emitter.flush()
        return emitter.log.read_back(DEVICE, {}).events[-1].payload


def test_a_box_is_closed(installation: Installation, server: FakeGbox) -> None:
    assert isinstance(ended(installation, "gbox", "box-1"), EnvironmentTerminated)
    assert server.alive == []


def test_a_box_that_is_gone_already_has_ended(installation: Installation, server: FakeGbox) -> None:
    assert server
    assert isinstance(ended(installation, "gbox", "box-9"), EnvironmentTerminated)


def test_a_box_without_an_id_yet_may_still_run(
    installation: Installation, server: FakeGbox
) -> None:
    assert server
    assert isinstance(ended(installation, "gbox", None), EnvironmentLeaked)


def test_a_box_that_cannot_be_closed_may_still_run(
    installation: Installation,
    server: FakeGbox,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(server, "refuses_to_close", True)
    assert isinstance(ended(installation, "gbox", "box-1"), EnvironmentLeaked)
    assert "GBox could not close box box-1" in caplog.text


def test_without_a_key_it_may_still_run(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GBOX_API_KEY", raising=False)
    assert isinstance(ended(installation, "gbox", "box-1"), EnvironmentLeaked)


@pytest.mark.parametrize("env_type", ["adb", "desktop", "openenv"])
def test_a_device_that_a_process_holds_ends_with_it(
    installation: Installation, env_type: str
) -> None:
    assert isinstance(ended(installation, env_type, "name"), EnvironmentTerminated)


def test_a_device_that_no_agent_knows_may_still_run(installation: Installation) -> None:
    assert isinstance(ended(installation, "of_somebody", "x"), EnvironmentLeaked)

"""A log that rollouts emit into, and reading them back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from producer.emit import Emitter
from schemas import ids
from schemas.base import Payload
from schemas.catalogue import stream
from schemas.installation import read_installation
from tests.support.scripted import plan

ROLLOUT = stream("rollout", plan(0).id)
DEVICE = stream("environment", ids.environment_id(plan(0).id))


@pytest.fixture
def emitter(tmp_path: Path) -> Iterator[Emitter]:
    with Emitter.open(read_installation({"CUA_HOME": str(tmp_path)})) as opened:
        yield opened


def payloads_of(emitter: Emitter, subject: str) -> list[Payload]:
    emitter.flush()
    return [event.payload for event in emitter.log.read_back(subject, {}).events]


def types_of(emitter: Emitter, subject: str) -> list[str]:
    return [payload.TYPE.removeprefix("cua.") for payload in payloads_of(emitter, subject)]

"""Fixtures: a running phone and a way to tap its elements."""

from collections.abc import Callable, Iterator

import pytest

from producer.agents.android.sim.device.sim import AndroidSim
from producer.agents.android.sim.oracle.navigator import tap_at
from producer.task import Task

NO_TASK = Task("none", "none", "Look around.", None, None, 10, None, None)


@pytest.fixture
def phone() -> Iterator[AndroidSim]:
    """The phone of seed 3, at home."""
    sim = AndroidSim()
    sim.open(NO_TASK, 3)
    yield sim
    sim.close()


@pytest.fixture
def tap(phone: AndroidSim) -> Callable[[str], None]:
    """Tap a visible element by name."""

    def do(name: str) -> None:
        element = next(element for element in phone.visible_elements() if element.name == name)
        phone.act(tap_at(element))

    return do

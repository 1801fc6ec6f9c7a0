"""A device that takes its time, around one that does not."""

import time
from collections.abc import Callable

from producer.environments.environment import Environment, Observation
from producer.environments.wrapper import EnvironmentWrapper
from producer.task import Task
from schemas.actions import Action

Latency = Callable[[], float]
"""Seconds that the next answer takes."""


class SlowDevice(EnvironmentWrapper):
    """Opens and acts after a latency; everything else is the device's own."""

    def __init__(self, device: Environment, *, opening: Latency, acting: Latency) -> None:
        super().__init__(device)
        self._opening, self._acting = opening, acting

    def open(self, task: Task, seed: int) -> Observation:
        time.sleep(self._opening())
        return self.inner.open(task, seed)

    def act(self, action: Action) -> Observation:
        time.sleep(self._acting())
        return self.inner.act(action)

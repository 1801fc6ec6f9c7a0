"""A device that takes its time, around one that does not."""

import time
from collections.abc import Callable

from producer.environments.environment import Environment, JudgingEnvironment, Observation
from producer.task import Task
from producer.validators.verdict import Evidence, Verdict
from schemas.actions import Action

Latency = Callable[[], float]
"""Seconds that the next answer takes."""


class SlowDevice:
    """Opens and acts after a latency; everything else is the device's own."""

    def __init__(self, device: Environment, *, opening: Latency, acting: Latency) -> None:
        self.env_type, self.box_type = device.env_type, device.box_type
        self.is_simulated = device.is_simulated
        self._device, self._opening, self._acting = device, opening, acting

    @property
    def provider_id(self) -> str:
        return self._device.provider_id

    def open(self, task: Task, seed: int) -> Observation:
        time.sleep(self._opening())
        return self._device.open(task, seed)

    def act(self, action: Action) -> Observation:
        time.sleep(self._acting())
        return self._device.act(action)

    def shell(self, command: str) -> str:
        return self._device.shell(command)

    def close(self) -> None:
        self._device.close()


class SlowJudgingDevice(SlowDevice):
    """The same around an environment that judges its episodes itself."""

    def __init__(self, device: JudgingEnvironment, *, opening: Latency, acting: Latency) -> None:
        super().__init__(device, opening=opening, acting=acting)
        self.ends_on_parse_error = device.ends_on_parse_error
        self._judging = device

    def judge(self, task: Task, evidence: Evidence) -> Verdict:
        return self._judging.judge(task, evidence)


def slowed(device: Environment, *, opening: Latency, acting: Latency) -> SlowDevice:
    """Slow in the same way, and judging if the environment does."""
    if isinstance(device, JudgingEnvironment):
        return SlowJudgingDevice(device, opening=opening, acting=acting)
    return SlowDevice(device, opening=opening, acting=acting)

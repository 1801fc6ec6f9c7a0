"""The interface Environment: a device that is looked at, acted on and asked.

Implementations import no torch.

Synchronous by design: the rollout engine runs each environment on a worker thread with a deadline,
so that one that hangs is a failed attempt and nothing else.
"""

from dataclasses import dataclass
from typing import Protocol

from producer.task import Task
from schemas.actions import Action


class EnvironmentFailedError(Exception):
    """The device died, hung or never came up: the attempt is a failure, not the agent's."""


class ActionRefusedError(Exception):
    """The device is well but cannot do this (a click outside the screen, an unknown app).

    The agent's runtime error.
    """


@dataclass(frozen=True, slots=True)
class Screenshot:
    """What the device shows."""

    png: bytes
    """PNG file, RGB."""
    width_px: int
    height_px: int


class Environment(Protocol):
    """One device for one episode. Used from one thread at a time."""

    env_type: str
    """`android_sim`, `gbox`, ..."""
    box_type: str
    """`android` or `linux`."""

    @property
    def provider_id(self) -> str:
        """The provider's name for this device (column gbox_id); known after `open`."""
        ...

    def open(self, task: Task, seed: int) -> Screenshot:
        """Bring a fresh device up, vary it by `seed`, run `task.setup`, show the first screen.

        EnvironmentFailedError.
        """
        ...

    def act(self, action: Action) -> Screenshot:
        """Do it and show the screen after it has settled.

        ActionRefusedError (screen unchanged) or EnvironmentFailedError.
        """
        ...

    def shell(self, command: str) -> str:
        """What a device's shell prints; the only thing a validator sees. EnvironmentFailedError."""
        ...

    def close(self) -> None:
        """Give the device back; twice is once; raises nothing."""
        ...

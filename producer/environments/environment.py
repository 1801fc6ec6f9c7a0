"""The Environment interface: a device with screenshots, actions and a shell.

Synchronous: the rollout engine calls each environment on a thread of its own with a deadline, so a
device that hangs fails one attempt and blocks no other. Implementations import no torch.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from producer.task import Task
from schemas.actions import Action
from schemas.blobs import blob_ref


class EnvironmentFailedError(Exception):
    """The device failed or did not start. The attempt failed; the agent is not to blame."""


class ActionRefusedError(Exception):
    """The device works but cannot do this: a click off the screen, an unknown app.

    The message is reported to the agent.
    """


@dataclass(frozen=True)
class Screenshot:
    """What the device shows."""

    png: bytes
    """PNG file, RGB."""
    width_px: int
    """Width of the screen, px."""
    height_px: int
    """Height of the screen, px."""

    @cached_property
    def ref(self) -> str:
        """The name of the PNG in the blob store; hashed on first use."""
        return blob_ref(self.png)


class Environment(Protocol):
    """One device for one episode. Used by one thread at a time."""

    env_type: str
    """Implementation: `android_sim`, `gbox` ..."""
    box_type: str
    """Operating system: `android` or `linux`."""
    is_simulated: bool
    """Whether it runs in this process and its answers depend on task, seed and actions alone.

    Such devices are waited for, so that batches do not depend on who answers first; their episodes
    can be played again; and they end with the process. A class without it is none.
    """

    @property
    def provider_id(self) -> str:
        """The provider's id of the device (column gbox_id); empty before `open`."""
        ...

    def open(self, task: Task, seed: int) -> Screenshot:
        """Start a device varied by `seed`, run `task.setup`; the first screenshot.

        EnvironmentFailedError.
        """
        ...

    def act(self, action: Action) -> Screenshot:
        """Perform the action and wait until the screen has settled; the screenshot after it.

        ActionRefusedError: the screen is unchanged. EnvironmentFailedError.
        """
        ...

    def shell(self, command: str) -> str:
        """Run a shell command; its output. Validators use nothing else. EnvironmentFailedError."""
        ...

    def close(self) -> None:
        """Release the device. Idempotent; raises nothing."""
        ...

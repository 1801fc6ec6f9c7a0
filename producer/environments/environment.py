"""The Environment interface: a device with screenshots, or something that answers in words.

Synchronous: the rollout engine calls each environment on a thread of its own with a deadline, so a
device that hangs fails one attempt and blocks no other. Implementations import no torch.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from producer.task import Task
from producer.validators.verdict import EndFacts, Evidence, Verdict
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
    text: str | None = None
    """Shown to the policy with the picture; None: nothing. On the first turn it follows the task's
    description, and every prompt of the episode keeps it."""
    is_over: bool = False
    """Whether the environment has ended the episode."""

    @cached_property
    def ref(self) -> str:
        """The name of the PNG in the blob store; hashed on first use."""
        return blob_ref(self.png)


@dataclass(frozen=True, slots=True)
class TextObservation:
    """The observation of an environment without a screen."""

    text: str | None
    """Shown to the policy; None: nothing, and on the first turn the task's description alone."""
    error: str | None = None
    """Why the action failed, for the record; `text` is for the agent. None: it did not."""
    is_over: bool = False
    """Whether the environment has ended the episode."""


Observation = Screenshot | TextObservation


def text_of(observation: Observation) -> str | None:
    """The words of an observation; None: it has none."""
    return observation.text


def screenshot_of(observation: Observation) -> Screenshot | None:
    """The screen of an observation; None of words."""
    return observation if isinstance(observation, Screenshot) else None


class Environment(Protocol):
    """One device for one episode. Used by one thread at a time."""

    env_type: str
    """Implementation: `android_sim`, `gbox` ..."""
    box_type: str
    """Operating system: `android` or `linux`; `database` of those without one."""
    is_simulated: bool
    """Whether it runs in this process and its answers depend on task, seed and actions alone.

    Such devices are waited for, so that batches do not depend on which answers first; their
    episodes can be played again; and they end with the process.
    """
    ends_on_parse_error: bool
    """Whether a completion without a valid action ends the episode."""

    @property
    def provider_id(self) -> str:
        """The provider's id of the device (column gbox_id); empty before `open`."""
        ...

    def open(self, task: Task, seed: int) -> Observation:
        """Start a device varied by `seed`, run `task.setup`; what the agent observes first.

        EnvironmentFailedError.
        """
        ...

    def act(self, action: Action) -> Observation:
        """Perform the action and wait until the screen has settled; what is observed after it.

        ActionRefusedError: nothing has changed. EnvironmentFailedError.
        """
        ...

    def judge(self, task: Task, evidence: Evidence) -> Verdict:
        """Whether the task is solved; `Verdict.facts` states the episode's end in its own terms.

        EnvironmentFailedError: there is no verdict, through no fault of the agent. ValueError for a
        task that it cannot judge.
        """
        ...

    def failure_facts(self, evidence: Evidence, reason: str) -> EndFacts | None:
        """The episode's end by the environment's failure, where that is an end in its own terms.

        Asks nothing of what has failed.
        """
        ...

    def close(self) -> None:
        """Release the device. Idempotent; raises nothing."""
        ...

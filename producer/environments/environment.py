"""The Environment interface: a device with screenshots, or one that answers in text.

Synchronous: the rollout engine calls each environment on its own thread with a deadline, so a
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
    """The device failed or did not start. The attempt failed through no fault of the agent."""


class ActionRefusedError(Exception):
    """The device works but cannot perform the action: a click off the screen, an unknown app.

    The message is reported to the agent.
    """


@dataclass(frozen=True)
class Screenshot:
    """A screenshot, with what else the environment shows at that moment."""

    png: bytes
    """PNG file, RGB."""
    width_px: int
    """Width of the screen, px."""
    height_px: int
    """Height of the screen, px."""
    text: str | None = None
    """Text shown to the policy with the screenshot; None for none. On the first turn it follows the
    task's description, and every prompt of the episode keeps it."""
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
    """Text shown to the policy. None shows nothing, or on the first turn only the task's
    description."""
    error: str | None = None
    """Why the action failed, for the record; `text` is what the agent sees. None if it did not
    fail."""
    is_over: bool = False
    """Whether the environment has ended the episode."""


Observation = Screenshot | TextObservation


def text_of(observation: Observation) -> str | None:
    """The text of an observation, or None."""
    return observation.text


def screenshot_of(observation: Observation) -> Screenshot | None:
    """The observation if it is a screenshot, else None."""
    return observation if isinstance(observation, Screenshot) else None


class Environment(Protocol):
    """One device for one episode. Used by one thread at a time."""

    env_type: str
    """Name of the implementation: `android_sim`, `gbox` ..."""
    box_type: str
    """Operating system, `android` or `linux`; `database` for environments without one."""
    is_simulated: bool
    """Whether it runs in this process and its answers depend only on the task, seed and actions.

    Such devices are waited for, so that batches do not depend on which one answers first. Their
    episodes can be replayed, and the devices end with the process.
    """
    ends_on_parse_error: bool
    """Whether a completion without a valid action ends the episode."""

    @property
    def provider_id(self) -> str:
        """The provider's id of the device (column gbox_id); empty before `open`."""
        ...

    def open(self, task: Task, seed: int) -> Observation:
        """Start a device varied by `seed`, run `task.setup` and return the first observation.

        Raises EnvironmentFailedError.
        """
        ...

    def act(self, action: Action) -> Observation:
        """Perform the action, wait until the screen has settled and return what is then observed.

        Raises ActionRefusedError, in which case nothing has changed, and EnvironmentFailedError.
        """
        ...

    def judge(self, task: Task, evidence: Evidence) -> Verdict:
        """Judge whether the task is solved.

        `Verdict.facts` describes the episode's end in the environment's own terms. Raises
        EnvironmentFailedError if there is no verdict, through no fault of the agent, and ValueError
        for a task that the environment cannot judge.
        """
        ...

    def failure_facts(self, evidence: Evidence, reason: str) -> EndFacts | None:
        """How the episode ended by a failure, in the environment's own terms; None if it has none.

        Makes no request to the device that failed.
        """
        ...

    def close(self) -> None:
        """Release the device. Idempotent; raises nothing."""
        ...

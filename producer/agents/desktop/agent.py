"""The agent `desktop`: a Linux desktop on this machine, operated by mouse and keyboard."""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from pydantic import JsonValue

from producer.agents.agent import Agent, AgentSettings, MakeEnvironment
from producer.agents.desktop.tasks import SCREEN_PX, SOURCE, DesktopSource
from producer.agents.task_source import by_type
from producer.errors import UnreachableError
from producer.task import Task

if TYPE_CHECKING:
    from uuid import UUID

    from producer.environments.environment import Environment
    from producer.policy.learner import Learner

NUM_AT_ONCE = 4
"""Default number of concurrent desktops; each is a display and several applications."""


class DesktopAgent(Agent):
    """A desktop in Xvfb."""

    name = "desktop"
    description = "a Linux desktop on this machine"
    box_type = "linux"
    screen_px = SCREEN_PX
    seeds_matter = True
    defaults: ClassVar[Mapping[str, JsonValue]] = {
        "max_turns": 40,
        "max_concurrent_rollouts": NUM_AT_ONCE,
    }
    task_sources = by_type(DesktopSource)

    def default_tasks(self, seed: int) -> dict[str, JsonValue]:  # noqa: ARG002  # no tasks are generated
        """The training tasks, and the held-out ones for evaluation."""
        return {
            "tasks": {"source_type": SOURCE, "split": "train"},
            "eval_tasks": {"source_type": SOURCE, "split": "held_out"},
        }

    def release(self, device_id: str | None) -> bool:  # noqa: ARG002  # required by the interface
        """True: a desktop ends with its process."""
        return True

    def make_environment(self, settings: AgentSettings) -> "Environment":  # noqa: ARG002  # required by the interface
        """A new desktop for each episode."""
        from producer.agents.desktop.environment import DesktopEnvironment

        return DesktopEnvironment()

    def check_task(self, settings: AgentSettings, task: Task) -> None:  # noqa: ARG002  # required by the interface
        """Check that the programs are installed and that a desktop starts.

        Raises UsageError, UnreachableError, and ValueError for a task that it cannot judge.
        """
        _check_desktop()
        if task.validation_query is not None or task.entry is not None:
            message = (
                f"task {task.task_id} is judged by a query of phones or by a database, which a"
                " desktop does not have; give it a judge"
            )
            raise ValueError(message)

    def open_oracle(self, settings: AgentSettings) -> "tuple[Learner, MakeEnvironment]":
        """A scripted policy that knows the steps, with random clicks mixed in."""
        from producer.agents.desktop.environment import DesktopEnvironment
        from producer.agents.desktop.oracle_policy import DesktopOracle

        oracle = DesktopOracle(noise=settings.oracle_noise, seed=settings.seed)

        def make_environment(episode: "UUID") -> "Environment":
            desktop = DesktopEnvironment()
            oracle.attach(episode, desktop)
            return desktop

        return oracle, make_environment


@cache
def _check_desktop() -> None:
    """Check that a desktop starts, once per process."""
    from producer.agents.desktop.programs import check_programs

    check_programs()
    from producer.agents.desktop.environment import DesktopEnvironment
    from producer.environments.environment import EnvironmentFailedError

    desktop = DesktopEnvironment()
    try:
        desktop.open(Task("start", "Start", "Look.", None, None, 1, None, None), seed=0)
    except EnvironmentFailedError as error:
        message = f"the desktop does not start: {error}"
        raise UnreachableError(message) from None
    finally:
        desktop.close()

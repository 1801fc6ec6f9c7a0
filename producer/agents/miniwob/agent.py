"""The agent `miniwob`: small web pages seen in screenshots and operated by mouse and keyboard."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from pydantic import JsonValue

from producer.agents.agent import Agent, AgentSettings, MakeEnvironment
from producer.agents.miniwob.tasks import Pages
from producer.agents.task_source import by_type
from producer.task import Task

if TYPE_CHECKING:
    from uuid import UUID

    from producer.environments.environment import Environment
    from producer.policy.learner import Learner


class MiniWobAgent(Agent):
    """An agent that operates the web pages of MiniWoB++."""

    name = "miniwob"
    description = "web pages of MiniWoB++"
    box_type = "linux"
    screen_px = (160, 210)
    seeds_matter = True
    defaults: ClassVar[Mapping[str, JsonValue]] = {"max_turns": 30}
    task_sources = by_type(Pages)

    def default_tasks(self, seed: int) -> dict[str, JsonValue]:  # noqa: ARG002  # no tasks are generated
        """The training pages, and the held-out ones for evaluation."""
        return {
            "tasks": {"source_type": "miniwob", "split": "train"},
            "eval_tasks": {"source_type": "miniwob", "split": "held_out"},
        }

    def make_environment(self, settings: AgentSettings) -> "Environment":  # noqa: ARG002  # required by the interface
        """An environment with a page in this process's browsers."""
        from producer.agents.miniwob.environment import MiniWobEnvironment

        return MiniWobEnvironment()

    def check_task(self, settings: AgentSettings, task: Task) -> None:  # noqa: ARG002  # required by the interface
        """Check that the pages and a browser are installed. Raises NotFoundError."""
        from producer.agents.miniwob.chromium import check_browser
        from producer.agents.miniwob.page_files import has_page

        if not has_page(task.task_id):
            message = f"{task.task_id} is not a page of MiniWoB++"
            raise ValueError(message)
        check_browser()

    def open_oracle(self, settings: AgentSettings) -> "tuple[Learner, MakeEnvironment]":
        """A scripted policy that reads the page's DOM, with random clicks mixed in."""
        from producer.agents.miniwob.environment import MiniWobEnvironment
        from producer.agents.miniwob.oracle_policy import PageOracle

        oracle = PageOracle(noise=settings.oracle_noise, seed=settings.seed)

        def make_environment(episode: "UUID") -> "Environment":
            page = MiniWobEnvironment()
            oracle.attach(episode, page)
            return page

        return oracle, make_environment

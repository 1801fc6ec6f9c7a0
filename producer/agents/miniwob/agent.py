"""The agent `miniwob`: small web pages seen in screenshots and operated by mouse and keyboard."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from pydantic import JsonValue

from producer.agents.agent import Agent, AgentSettings, MakeEnvironment
from producer.agents.built_policy import BuiltPolicy, OnStep
from producer.agents.miniwob.policy.recipe import RECIPE, TRAINED_PAGES, policy_name, warm_up_plan
from producer.agents.miniwob.tasks import Pages
from producer.agents.task_source import by_type
from producer.task import Task

if TYPE_CHECKING:
    from uuid import UUID

    from producer.environments.environment import Environment
    from producer.policy.learner import Learner

DEMO_PRESET: Final[dict[str, JsonValue]] = {
    "lora_rank": 16,
    "max_turns": 1,
    "max_recent_turns": None,
    "group_size": 8,
    "groups_per_batch": 16,
    "num_steps": 24,
    "learning_rate": 1.5e-3,
    "max_tokens": 14,
    "num_substeps": 2,
    "parse_error_cost": 0.1,
    "max_concurrent_rollouts": 16,
    "eval_every": 0,
    "eval_episodes": 192,
    "save_every": 8,
    "tasks": {"source_type": "miniwob", "names": list(TRAINED_PAGES)},
    "eval_tasks": None,
}
"""One click on pages that it solves; evaluated on the same pages with other seeds. Sixteen windows
fill one browser."""


def _make(folder: Path, on_step: OnStep) -> None:
    from producer.agents.miniwob.chromium import check_browser
    from producer.agents.miniwob.policy.warm_up import make_policy

    check_browser()
    make_policy(folder, on_step, RECIPE)


def _build_shape(folder: Path) -> None:
    from producer.agents.miniwob.pages import web_pages
    from producer.agents.miniwob.policy.warm_up import build_unwarmed
    from producer.agents.miniwob.tasks import page_task

    # Words outside these texts become the tokenizer's unknown token.
    texts = [page_task(web_pages()[name]).description for name in RECIPE.task_ids]
    build_unwarmed(folder, texts, seed=0)


class MiniWobAgent(Agent):
    """An agent that operates the web pages of MiniWoB++."""

    name = "miniwob"
    description = "web pages of MiniWoB++"
    box_type = "linux"
    screen_px = (160, 210)
    seeds_matter = True
    defaults: ClassVar[Mapping[str, JsonValue]] = {"max_turns": 30}
    demo_preset = DEMO_PRESET
    built_policy = BuiltPolicy(
        policy_name(RECIPE), warm_up_plan, _make, _build_shape, RECIPE.task_ids
    )
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
        """Check that the pages and a browser are installed. Raises UsageError."""
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

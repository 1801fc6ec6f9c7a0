"""The agent `android`: taps and types on a phone that it sees in screenshots."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from pydantic import Field, JsonValue

from producer.agents.agent import Agent, AgentSettings, MakeEnvironment
from producer.agents.android.demo_tasks import demo_tasks
from producer.agents.android.goals import every_goal_task, goal_tasks
from producer.agents.android.policy.recipe import WarmUpRecipe, warm_up_plan
from producer.agents.android.sim.screens.widget import HEIGHT_PX, WIDTH_PX
from producer.agents.built_policy import BuiltPolicy, OnStep
from producer.agents.task_source import TaskSource, by_type
from producer.errors import UsageError
from producer.task import Name, Task
from schemas.advice import did_you_mean

if TYPE_CHECKING:
    from uuid import UUID

    from producer.environments.environment import Environment
    from producer.policy.learner import Learner

DEMO_PRESET: Final[dict[str, JsonValue]] = {
    "lora_rank": 16,
    "max_turns": 12,
    "max_recent_turns": None,
    "group_size": 8,
    "groups_per_batch": 16,
    "num_steps": 24,
    "learning_rate": 1.5e-3,
    "max_tokens": 14,
    "num_substeps": 2,
    "parse_error_cost": 0.1,
    "max_concurrent_rollouts": 128,
    "eval_every": 0,
    "eval_episodes": 264,
    "eval_sampled_episodes": 264,
    "save_every": 8,
    "tasks": {"source_type": "phone_goals", "split": "train"},
    "eval_tasks": {"source_type": "phone_goals", "split": "held_out"},
}
"""A network of 1 M parameters needs other settings than one of 30 B."""


def _make(folder: Path, on_step: OnStep) -> None:
    from producer.agents.android.policy.warm_up import make_policy

    make_policy(folder, on_step, WarmUpRecipe())


def _build_shape(folder: Path) -> None:
    from producer.agents.android.policy.build import build_policy

    # Words outside these texts become the tokenizer's unknown token.
    tasks = (*demo_tasks(), *every_goal_task())
    build_policy(folder, [task.description for task in tasks], seed=0)


class DemoTasks(TaskSource):
    """Demo tasks, for training, for evaluation or all of them."""

    source_type: Literal["demo_training", "demo_eval", "demo_all"]

    def load(self, where: str) -> Sequence[Task]:  # noqa: ARG002  # cannot fail
        """The tasks in the order of their file."""
        split = {"demo_training": "train", "demo_eval": "eval"}.get(self.source_type)
        return [task for task in demo_tasks() if split in {None, task.split}]

    @classmethod
    def held_out(cls, given: dict[str, JsonValue]) -> JsonValue:
        """All demo tasks for evaluation."""
        return {"source_type": "demo_eval"} if given["source_type"] == "demo_training" else None


class PhoneGoals(TaskSource):
    """Tasks of one or two goals on the phone."""

    source_type: Literal["phone_goals"]
    split: Literal["single", "train", "held_out"] = "train"
    """`single`: tasks of one goal; otherwise pairs of goals, for training or held out."""

    def load(self, where: str) -> Sequence[Task]:  # noqa: ARG002  # cannot fail
        """The tasks of the split, in a fixed order."""
        return goal_tasks(self.split)

    @classmethod
    def held_out(cls, given: dict[str, JsonValue]) -> JsonValue:
        """The held-out pairs, whichever other tasks are trained on."""
        return {**given, "split": "held_out"} if given.get("split") != "held_out" else None


class DemoIds(TaskSource):
    """Demo tasks by their ids."""

    source_type: Literal["ids"]
    task_ids: tuple[Name, ...] = Field(min_length=1)
    """Ids of demo tasks."""

    def load(self, where: str) -> Sequence[Task]:
        """The tasks in the order of their ids."""
        known = {task.task_id: task for task in demo_tasks()}
        unknown = [task_id for task_id in self.task_ids if task_id not in known]
        if unknown:
            names = ", ".join(map(repr, unknown))
            message = (
                f"{where}.task_ids: no demo task is called {names}."
                f"{did_you_mean(unknown[0], known)} `cua-train tasks list` shows them all"
            )
            raise UsageError(message)
        return [known[task_id] for task_id in self.task_ids]


class AndroidAgent(Agent):
    """A phone."""

    name = "android"
    description = "a phone"
    box_type = "android"
    screen_px = (WIDTH_PX, HEIGHT_PX)
    seeds_matter = True
    demo_preset = DEMO_PRESET
    served_tasks: ClassVar[JsonValue] = [
        {"source_type": "demo_all"},
        {"source_type": "phone_goals"},
    ]
    built_policy = BuiltPolicy(WarmUpRecipe().policy_name, warm_up_plan, _make, _build_shape)
    task_sources = by_type(DemoTasks, PhoneGoals, DemoIds)

    def make_environment(self, settings: AgentSettings) -> "Environment":  # noqa: ARG002  # required by the interface
        """A simulated phone."""
        from producer.agents.android.sim.device.sim import AndroidSim

        return AndroidSim()

    def check_task(self, settings: AgentSettings, task: Task) -> None:  # noqa: ARG002  # required by the interface
        """Set the task up on a phone and run its device query once."""
        from producer.agents.android.shell_judge import judge, single_query_tasks
        from producer.agents.android.sim.device.answers import check_answer
        from producer.agents.android.sim.device.sim import AndroidSim

        if task.source_type in self.task_sources:
            return  # Our own tasks are known to be sound.
        if task.entry is not None:
            message = f"task {task.task_id} is about a database; use environment {task.entry.kind}"
            raise ValueError(message)
        for part in single_query_tasks(task):
            check_answer(part.validation_query or "", part.expected_result or "")
        phone = AndroidSim()
        try:
            phone.start(task, seed=0)
            if task.validation_type == "shell":
                judge(task, phone.shell)
        finally:
            phone.close()

    def open_oracle(self, settings: AgentSettings) -> "tuple[Learner, MakeEnvironment]":
        """An oracle that reads the phone's true state, with random actions mixed in."""
        from producer.agents.android.sim.device.sim import AndroidSim
        from producer.agents.android.sim.oracle.oracles import NoisyOracle

        oracle = NoisyOracle(noise=settings.oracle_noise, seed=settings.seed)

        def make_environment(episode: "UUID") -> "Environment":
            phone = AndroidSim()
            oracle.attach(episode, phone)
            return phone

        return oracle, make_environment

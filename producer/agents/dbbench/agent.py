"""The agent `dbbench`: SQL sessions with a one-table database (DB Bench, Agent-PEFT)."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, cast

from pydantic import Field, JsonValue, NonNegativeInt

from producer.agents.agent import Agent, AgentSettings, MakeEnvironment
from producer.agents.built_policy import BuiltPolicy, OnStep
from producer.agents.dbbench.codec import SYSTEM_PROMPT, DbBenchCodec
from producer.agents.dbbench.policy.recipe import TextRecipe, warm_up_plan
from producer.agents.task_source import SplitSource, by_type
from producer.codecs.codec import Format
from producer.rewards.named import Reward, session
from producer.task import Task

if TYPE_CHECKING:
    from producer.environments.environment import Environment
    from producer.policy.learner import Learner

PASSWORD = "CUA_DBBENCH_PASSWORD"  # noqa: S105  # the variable's name
DEFAULTS: Final[dict[str, JsonValue]] = {
    "lora_rank": 16,
    "lora_alpha": 32.0,
    "lora_dropout": 0.1,
    "target_modules": ["attention"],
    "max_turns": 3,
    "max_tokens": 512,
    "group_size": 1,
    "groups_per_batch": 1,
    "advantage": "reinforce",
    "remove_constant_reward_groups": False,
    "min_group_size": 1,
    "loss_fn": "reinforce",
    "reward": "dbbench",
}
"""Agent-PEFT's values."""
DEMO_PRESET: Final[dict[str, JsonValue]] = {
    "groups_per_batch": 64,
    "num_steps": 40,
    "learning_rate": 1.5e-3,
    "max_gradient_norm": 10.0,
    "max_tokens": 64,
    "eval_every": 0,
    "eval_episodes": 264,
    "eval_sampled_episodes": 528,
    "save_every": 20,
    "max_concurrent_rollouts": 64,
}
"""Each update uses the gradients of 64 sessions: with one session, 150 updates changed nothing
measurable (docs/measurements/dbbench.md)."""
NUM_TRAINED_ENTRIES = 1100
NUM_HELD_OUT_ENTRIES = 264
"""Default numbers of generated entries for training and for evaluation: 50 and 12 per skill."""


def _make(folder: Path, on_step: OnStep) -> None:
    from producer.agents.dbbench.policy.warm_up import make_policy

    make_policy(folder, on_step, TextRecipe())


def _build_shape(folder: Path) -> None:
    from producer.agents.dbbench.policy.warm_up import build_unwarmed

    build_unwarmed(folder, TextRecipe(), [])


class Entries(SplitSource):
    """Entries of a folder. Held-out ones are about other tables."""

    source_type: Literal["dbbench"]
    path: Path
    """Folder in LifelongAgentBench's layout."""
    skills: tuple[str, ...] = Field((), min_length=1)
    """Selects only entries that need one of these skills; empty selects all."""
    positions: tuple[NonNegativeInt, ...] | None = Field(None, min_length=1)
    """Selects only the entries at these positions in the data, counted from 0."""

    def load(self, where: str) -> Sequence[Task]:
        """The entries in the order of the folder."""
        from producer.agents.dbbench.data.tasks import load_dbbench

        return load_dbbench(
            self.path, where, split=self.split, skills=self.skills, positions=self.positions
        )


class GeneratedEntries(SplitSource):
    """Entries that are generated. Held-out ones are about other tables."""

    source_type: Literal["dbbench_generated"]
    num_samples: int = Field(ge=1, le=100_000)
    """Number of entries."""
    skills: tuple[str, ...] = Field((), min_length=1)
    """Generates only entries that need one of these skills; empty for all."""

    def load(self, where: str) -> Sequence[Task]:
        """The entries in the order of their numbers."""
        from producer.agents.dbbench.data.tasks import generated_tasks

        return generated_tasks(
            self.num_samples, self.seed, where, split=self.split, skills=self.skills
        )

    @classmethod
    def held_out(cls, given: dict[str, JsonValue]) -> JsonValue:
        """The other split, with at most the default number of entries."""
        number, held_out = given.get("num_samples"), super().held_out(given)
        if not isinstance(number, int) or not isinstance(held_out, dict):
            return held_out
        return {**held_out, "num_samples": min(number, NUM_HELD_OUT_ENTRIES)}


def _session_reward(settings: Any | None) -> Reward:  # noqa: ANN401  # three of the configuration's fields
    if settings is None:
        return session
    return partial(
        session,
        correct=settings.reward_correct,
        incorrect=settings.reward_incorrect,
        timeout=settings.reward_timeout,
    )


class DbBenchAgent(Agent):
    """An agent that works on a database in sessions of SQL."""

    name = "dbbench"
    description = "sessions with a database"
    box_type = "database"
    has_skills = True
    sql_dialect = "mysql"
    own_settings = frozenset({"dbbench_database"})
    defaults = DEFAULTS
    demo_preset = DEMO_PRESET
    built_policy = BuiltPolicy(TextRecipe().policy_name, warm_up_plan, _make, _build_shape)
    task_sources = by_type(Entries, GeneratedEntries)
    rewards: ClassVar[Mapping[str, Callable[[Any | None], Reward]]] = {"dbbench": _session_reward}

    def default_tasks(self, seed: int) -> dict[str, JsonValue]:
        """Generated entries for training, and entries about other tables for evaluation."""
        numbers = {"train": NUM_TRAINED_ENTRIES, "held_out": NUM_HELD_OUT_ENTRIES}
        train, held_out = (
            cast(
                "JsonValue",
                {
                    "source_type": "dbbench_generated",
                    "num_samples": number,
                    "seed": seed,
                    "split": split,
                },
            )
            for split, number in numbers.items()
        )
        return {"tasks": train, "eval_tasks": held_out}

    def text_format(self, settings: AgentSettings) -> Format:  # noqa: ARG002  # required by the interface
        """A codec for SQL blocks and final answers."""
        return Format(DbBenchCodec(), SYSTEM_PROMPT)

    def make_environment(self, settings: AgentSettings) -> "Environment":
        """An environment on the configured server, or else on an embedded database."""
        from producer.agents.dbbench.environment import DbBenchEnvironment, open_on_server

        if settings.dbbench_database is None:
            return DbBenchEnvironment()
        password = os.environ.get(PASSWORD)
        return DbBenchEnvironment(open_on_server(settings.dbbench_database, password))

    def check_task(self, settings: AgentSettings, task: Task) -> None:
        """Build the task's table once, and check that the server answers."""
        from producer.agents.dbbench.environment import DbBenchEnvironment, check_server

        if settings.dbbench_database is not None:
            check_server(settings.dbbench_database, os.environ.get(PASSWORD))
        if task.source_type == "dbbench_generated":
            return  # Generated entries are known to be sound.
        environment = DbBenchEnvironment()
        try:
            environment.open(task, 0)
        finally:
            environment.close()

    def open_oracle(self, settings: AgentSettings) -> "tuple[Learner, MakeEnvironment]":
        """A scripted policy that executes the gold and answers with its rows."""
        from producer.policy.scripted_learner import GoldOracle

        oracle = GoldOracle(
            DbBenchCodec(), noise=settings.oracle_noise, seed=settings.seed, asks_first=True
        )
        return oracle, lambda _episode: self.make_environment(settings)

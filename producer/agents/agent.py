"""The Agent interface: where an agent works, its tasks, how it writes, and what it is trained with.

An agent's heavy parts (devices, databases, torch) are imported when they are first used: reading a
configuration needs none of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from pydantic import JsonValue

from producer.agents.built_policy import BuiltPolicy
from producer.agents.task_source import TaskSource
from producer.codecs.format import Format
from producer.rewards.outcome import Reward
from producer.task import Task

if TYPE_CHECKING:
    from uuid import UUID

    from producer.environments.environment import Environment
    from producer.policy.learner import Learner


class AgentSettings(Protocol):
    """The fields of the configuration that agents read."""

    @property
    def tasks(self) -> JsonValue:
        """Sources of the training tasks."""

    @property
    def eval_tasks(self) -> JsonValue:
        """Sources of the evaluation tasks; None: those of training."""

    @property
    def dbbench_database(self) -> str | None:
        """URL of a database server; None: an embedded database."""

    @property
    def oracle_noise(self) -> float:
        """Probability of a mistake of the scripted policy."""

    @property
    def seed(self) -> int:
        """Of the run."""


MakeEnvironment = Callable[["UUID"], "Environment"]
"""A fresh environment for the episode of this id."""


class Agent(ABC):
    """One kind of agent. Stateless."""

    name: ClassVar[str]
    """`environment` of the configuration."""
    description: ClassVar[str]
    """What the agent works in, for `--help`."""
    box_type: ClassVar[Literal["android", "database"]]
    """As `Environment.box_type`."""
    screen_px: ClassVar[tuple[int, int] | None] = None
    """Width and height; None: it has no screen, and a policy needs no vision tower."""
    seeds_matter: ClassVar[bool] = False
    """Whether a seed changes a task's initial state; False: each episode of a task is the same."""
    has_skills: ClassVar[bool] = False
    """Whether tasks are tagged with skills, which can be trained one after another."""
    answers_in_steps: ClassVar[bool] = False
    """Whether an episode is one completion of steps that end in executed SQL, which process reward
    models can score."""
    sql_dialect: ClassVar[Literal["mysql", "sqlite"] | None] = None
    """Of the golds of its tasks; None: they have none."""
    own_settings: ClassVar[frozenset[str]] = frozenset()
    """Fields of the configuration that only this agent has."""
    defaults: ClassVar[Mapping[str, JsonValue]] = {}
    """Of fields of the configuration, for every policy."""
    demo_preset: ClassVar[Mapping[str, JsonValue]] = {}
    """Further defaults for its built policy."""
    task_sources: ClassVar[Mapping[str, TaskSource]]
    """`source_type` -> the source of its own tasks."""
    built_policy: ClassVar[BuiltPolicy | None] = None
    """The policy `demo`; None: there is none."""
    rewards: ClassVar[Mapping[str, Callable[[Any | None], Reward]]] = {}
    """Name -> its reward with the configuration's settings, or with the defaults."""

    def default_tasks(self, seed: int) -> dict[str, JsonValue]:  # noqa: ARG002  # of generated tasks
        """The fields `tasks` and `eval_tasks` where none are given, for every policy."""
        return {}

    def text_format(self) -> Format | None:
        """How a policy writes here; None: the policy's family decides."""
        return None

    @abstractmethod
    def make_environment(self, settings: AgentSettings) -> "Environment":
        """A fresh one for one rollout."""

    @abstractmethod
    def check_task(self, settings: AgentSettings, task: Task) -> None:
        """ValueError or EnvironmentFailedError for a task that its environment cannot set up."""

    @abstractmethod
    def open_oracle(self, settings: AgentSettings) -> "tuple[Learner, MakeEnvironment]":
        """The scripted policy, which knows the answers, and its environments."""

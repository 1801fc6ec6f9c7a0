"""The Agent interface: where an agent works, its tasks, how it writes, and what it is trained with.

An agent's heavy parts (devices, databases, torch) are imported when they are first used: reading a
configuration needs none of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from pydantic import JsonValue

from producer.agents.built_policy import BuiltPolicy
from producer.agents.task_source import TaskSource
from producer.codecs.codec import Format
from producer.rewards.named import Reward
from producer.task import Task

if TYPE_CHECKING:
    from uuid import UUID

    from producer.config.fields import ConfigFields
    from producer.environments.environment import Environment
    from producer.policy.learner import Learner


AgentSettings: TypeAlias = "ConfigFields"
"""The configuration; agents read the fields of their topic."""
MakeEnvironment = Callable[["UUID"], "Environment"]
"""A fresh environment for the episode of this id."""


@dataclass(frozen=True, slots=True)
class RentedDevice:
    """A device of ours that a provider rents out, and that exists until it is closed or expires."""

    device_id: str
    """The provider's."""
    box_type: str
    """android or linux."""
    status: str
    """In the provider's words."""
    training: str | None
    """Name of the training that it was rented for; None: for none, or it has no label."""
    created_at: datetime
    expires_at: datetime | None
    """When its provider deletes it; None: never, as far as it says."""


class Agent(ABC):
    """One kind of agent. Stateless."""

    name: ClassVar[str]
    """`environment` of the configuration."""
    description: ClassVar[str]
    """What the agent works in, for `--help`."""
    box_type: ClassVar[Literal["android", "database", "linux"]]
    """As `Environment.box_type`."""
    screen_px: ClassVar[tuple[int, int] | None] = None
    """As `screen` returns it, where no setting changes it."""
    seeds_matter: ClassVar[bool] = False
    """Whether a seed changes a task's initial state; False: each episode of a task is the same."""
    has_skills: ClassVar[bool] = False
    """Whether tasks are tagged with skills, which can be trained one after another."""
    answers_in_steps: ClassVar[bool] = False
    """Whether an episode is one completion of steps that end in executed SQL, which process reward
    models can score."""
    sql_dialect: ClassVar[Literal["mysql", "sqlite"] | None] = None
    """Of the golds of its tasks; None: they have none."""
    is_served: ClassVar[bool] = True
    """Whether `cua-train env serve` offers its environment."""
    own_settings: ClassVar[frozenset[str]] = frozenset()
    """Fields of the configuration that only this agent has, or few agents share."""
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

    def screen(self, settings: AgentSettings) -> tuple[int, int] | None:  # noqa: ARG002  # of devices
        """Width and height, px; None: it has no screen, and a policy needs no vision tower."""
        return self.screen_px

    def has_screen(self, settings: AgentSettings) -> bool:
        """Whether it has one; asks no device."""
        return self.screen(settings) is not None

    def operating_system(
        self,
        settings: AgentSettings,  # noqa: ARG002  # of devices
    ) -> Literal["android", "database", "linux"]:
        """As `Environment.box_type`, with these settings."""
        return self.box_type

    def most_at_once(self, settings: AgentSettings) -> int | None:  # noqa: ARG002  # of devices
        """Episodes that its devices can have at the same time; None: as many as are asked for."""
        return None

    def text_format(self, settings: AgentSettings) -> Format | None:  # noqa: ARG002  # of servers
        """How a policy writes here; None: the policy's family decides."""
        return None

    def rented_devices(self) -> Sequence[RentedDevice]:
        """Devices of ours that exist at its provider. CuaTrainError where it does not answer."""
        return ()

    def release(self, device_id: str | None) -> bool:  # noqa: ARG002  # of devices
        """End the device of a process that died; whether it certainly is free now.

        `device_id`: the environment's `provider_id`; None: it had none yet. EnvironmentFailedError,
        CuaTrainError. The environment's `env_type` is the agent's name.
        """
        return False

    @abstractmethod
    def make_environment(self, settings: AgentSettings) -> "Environment":
        """A fresh one for one rollout."""

    @abstractmethod
    def check_task(self, settings: AgentSettings, task: Task) -> None:
        """ValueError or EnvironmentFailedError for a task that its environment cannot set up."""

    @abstractmethod
    def open_oracle(self, settings: AgentSettings) -> "tuple[Learner, MakeEnvironment]":
        """The scripted policy, which knows the answers, and its environments."""

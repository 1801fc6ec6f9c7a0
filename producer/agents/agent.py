"""The Agent interface: an agent's environment, its tasks, its text format and its defaults.

An agent's heavy dependencies (devices, databases, torch) are imported on first use, so reading a
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
from producer.errors import UsageError
from producer.rewards.named import Reward
from producer.task import Task

if TYPE_CHECKING:
    from uuid import UUID

    from producer.config.fields import ConfigFields
    from producer.environments.environment import Environment
    from producer.policy.learner import Learner


AgentSettings: TypeAlias = "ConfigFields"
"""The configuration. Each agent reads the fields that concern it."""
MakeEnvironment = Callable[["UUID"], "Environment"]
"""Creates a new environment for the episode with this id."""


@dataclass(frozen=True, slots=True)
class RentedDevice:
    """A device that we rent from a provider. It exists until it is closed or expires."""

    device_id: str
    """The provider's id of the device."""
    box_type: str
    """`android` or `linux`."""
    status: str
    """The status in the provider's words."""
    training: str | None
    """Name of the training that the device was rented for; None if it was rented for none or
    carries no label."""
    created_at: datetime
    expires_at: datetime | None
    """When the provider deletes the device; None if the provider states no expiry."""


class Agent(ABC):
    """One kind of agent. Stateless."""

    name: ClassVar[str]
    """The value of `environment` in the configuration."""
    description: ClassVar[str]
    """What the agent operates, shown in `--help`."""
    box_type: ClassVar[Literal["android", "database", "linux"]]
    """See `Environment.box_type`."""
    screen_px: ClassVar[tuple[int, int] | None] = None
    """The result of `screen`, for agents whose screen size no setting changes."""
    seeds_matter: ClassVar[bool] = False
    """Whether the seed changes a task's initial state. If False, every episode of a task starts the
    same."""
    has_skills: ClassVar[bool] = False
    """Whether tasks are tagged with skills, which can be trained one after another."""
    answers_in_steps: ClassVar[bool] = False
    """Whether an episode is a single completion, written in steps and ending in executed SQL, which
    process reward models can score."""
    sql_dialect: ClassVar[Literal["mysql", "sqlite"] | None] = None
    """The SQL dialect of the tasks' gold answers; None if the tasks have no gold SQL."""
    is_served: ClassVar[bool] = True
    """Whether `cua-train env serve` offers its environment."""
    own_settings: ClassVar[frozenset[str]] = frozenset()
    """Configuration fields that only this agent, or a few agents, use."""
    defaults: ClassVar[Mapping[str, JsonValue]] = {}
    """Defaults for configuration fields, whatever the policy."""
    demo_preset: ClassVar[Mapping[str, JsonValue]] = {}
    """Additional defaults that apply when the agent's built policy is used."""
    served_tasks: ClassVar[JsonValue] = None
    """Default tasks of `cua-train env serve`; None: those of `run`."""
    task_sources: ClassVar[Mapping[str, type[TaskSource]]]
    """Maps `source_type` to the source of the agent's own tasks."""
    built_policy: ClassVar[BuiltPolicy | None] = None
    """The policy that `demo` selects; None if the agent has none."""
    rewards: ClassVar[Mapping[str, Callable[[Any | None], Reward]]] = {}
    """Maps a reward's name to a factory that takes the configuration's settings for that reward, or
    None for the defaults."""

    def default_tasks(self, seed: int) -> dict[str, JsonValue]:  # noqa: ARG002  # used by agents that generate tasks
        """The values of `tasks` and `eval_tasks` when none are given, whatever the policy."""
        return {}

    def screen(self, settings: AgentSettings) -> tuple[int, int] | None:  # noqa: ARG002  # used by agents with devices
        """Width and height in px; None if there is no screen and policies need no vision tower."""
        return self.screen_px

    def has_screen(self, settings: AgentSettings) -> bool:
        """Whether the agent has a screen. Contacts no device."""
        return self.screen(settings) is not None

    def operating_system(
        self,
        settings: AgentSettings,  # noqa: ARG002  # used by agents with devices
    ) -> Literal["android", "database", "linux"]:
        """The environment's `box_type` under these settings."""
        return self.box_type

    def most_at_once(self, settings: AgentSettings) -> int | None:  # noqa: ARG002  # used by agents with devices
        """How many episodes the agent's devices can run concurrently; None if unlimited."""
        return None

    def text_format(self, settings: AgentSettings) -> Format | None:  # noqa: ARG002  # used by agents on servers
        """How policies write actions here; None leaves that to the policy's model family."""
        return None

    def official_renderer(self, settings: AgentSettings) -> Literal["qwen_mobile", "qwen_computer"]:
        """The `renderer_name` with which policies of Qwen's format operate the device."""
        is_computer = self.operating_system(settings) == "linux"
        return "qwen_computer" if is_computer else "qwen_mobile"

    def rented_devices(self) -> Sequence[RentedDevice]:
        """Our devices that currently exist at the provider.

        Raises CuaTrainError if the provider does not answer.
        """
        return ()

    def release(self, device_id: str | None) -> bool:  # noqa: ARG002  # used by agents with devices
        """Release the device of a process that died. Returns True only if it is certainly free now.

        `device_id` is the environment's `provider_id`, or None if it had none yet. The
        environment's `env_type` is the agent's name. Raises EnvironmentFailedError and
        CuaTrainError.
        """
        return False

    @abstractmethod
    def make_environment(self, settings: AgentSettings) -> "Environment":
        """Create a new environment for one rollout."""

    @abstractmethod
    def check_task(self, settings: AgentSettings, task: Task) -> None:
        """Check that the environment can set up the task.

        Raises ValueError, EnvironmentFailedError.
        """

    def open_oracle(self, settings: AgentSettings) -> "tuple[Learner, MakeEnvironment]":  # noqa: ARG002  # used by agents that have one
        """The scripted policy, which knows the answers, and a factory for its environments.

        Raises UsageError if there is none.
        """
        message = (
            "model_name: the policy `oracle` knows the answers of simulated devices and of data,"
            f" but not those of {self.description}; use another policy"
        )
        raise UsageError(message)

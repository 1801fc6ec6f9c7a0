"""The agent `openenv`: any environment that an OpenEnv server offers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field, JsonValue

from producer.agents.agent import Agent, AgentSettings
from producer.agents.environment_server import EXAMPLE, TASK_ID, require_package, size_px
from producer.agents.task_source import TaskSource, by_type
from producer.codecs.codec import Format
from producer.errors import UsageError
from producer.task import Name, Task

if TYPE_CHECKING:
    from producer.environments.environment import Environment

SERVERS_OWN: Final = "openenv"
MAX_TURNS: Final = 1000
"""Maximum turns of a task. The server ends its episodes, and the configuration limits them."""
ENGINE_FIRST_S: Final = 1.0
"""Added to the limit of a turn, so that the engine records a hanging environment before its session
gives up."""
DESCRIPTION: Final = "Do what the environment asks."


def _task(task_id: str | None) -> Task:
    return Task(
        task_id=task_id or SERVERS_OWN,
        name=task_id or "The server's own task",
        description=DESCRIPTION,
        difficulty=None,
        category=None,
        max_steps=MAX_TURNS,
        validation_query=None,
        expected_result=None,
        source_type=SERVERS_OWN,
        validation_config={} if task_id is None else {TASK_ID: task_id},
        judge="environment",
    )


class ServersOwn(TaskSource):
    """Whatever task the server chooses."""

    source_type: Literal["openenv"]

    def load(self, where: str) -> Sequence[Task]:  # noqa: ARG002  # cannot fail
        """One task, which stands for all of the server."""
        return [_task(None)]


class ServersIds(TaskSource):
    """Tasks of the server by their ids."""

    source_type: Literal["openenv_ids"]
    task_ids: tuple[Name, ...] = Field(min_length=1)
    """Ids that the server knows."""

    def load(self, where: str) -> Sequence[Task]:  # noqa: ARG002  # cannot fail
        """The tasks in the order of their ids."""
        return [_task(task_id) for task_id in self.task_ids]


class OpenEnvAgent(Agent):
    """An agent that works in an environment on OpenEnv servers."""

    name = SERVERS_OWN
    description = "an OpenEnv server"
    box_type = "linux"
    seeds_matter = True
    is_served = False
    own_settings = frozenset({"env_url", "env_actions", "env_screen"})
    task_sources = by_type(ServersOwn, ServersIds)

    def default_tasks(self, seed: int) -> dict[str, JsonValue]:  # noqa: ARG002  # required by the interface
        """The server's own tasks."""
        return {"tasks": {"source_type": SERVERS_OWN}}

    def screen(self, settings: AgentSettings) -> tuple[int, int] | None:
        """The size in the settings; no server is asked."""
        return size_px(settings.env_screen)

    def text_format(self, settings: AgentSettings) -> Format | None:
        """Text or JSON without a screen. With a screen, the policy's family decides."""
        from producer.agents.openenv.codecs import (
            JSON_PROMPT,
            TEXT_PROMPT,
            JsonActionCodec,
            TextCodec,
        )
        from producer.agents.openenv.mappings import MAPPINGS

        if MAPPINGS[settings.env_actions].is_text:
            return Format(TextCodec(), TEXT_PROMPT)
        return None if settings.env_screen else Format(JsonActionCodec(), JSON_PROMPT)

    def official_renderer(self, settings: AgentSettings) -> Literal["qwen_mobile", "qwen_computer"]:
        """A browser has a mouse and keys; what else a server offers may be a phone."""
        return "qwen_computer" if settings.env_actions == "browsergym" else "qwen_mobile"

    def make_environment(self, settings: AgentSettings) -> "Environment":
        """An environment with a new session on one of the servers."""
        from producer.agents.openenv.environment import OpenEnvEnvironment
        from producer.agents.openenv.mappings import MAPPINGS

        return OpenEnvEnvironment(
            _urls(settings),
            MAPPINGS[settings.env_actions],
            self.screen(settings),
            settings.max_turn_time_seconds + ENGINE_FIRST_S,
        )

    def release(self, device_id: str | None) -> bool:  # noqa: ARG002  # required by the interface
        """True: a server ends a session whose connection has ended, with the process."""
        return True

    def check_task(self, settings: AgentSettings, task: Task) -> None:
        """Begin an episode of the task once on every server.

        Raises UsageError without the package.
        """
        if task.validation_query is not None or task.entry is not None:
            message = (
                f"task {task.task_id} is judged by a query or a gold answer, which a server lacks;"
                f' use {{"source_type": "{SERVERS_OWN}"}}'
            )
            raise ValueError(message)
        require_package()
        from producer.agents.openenv.checks import check_server

        for url in _urls(settings):
            task_id = task.validation_config.get(TASK_ID)
            check_server(url, settings.env_actions, self.screen(settings), task_id)


def _urls(settings: AgentSettings) -> list[str]:
    if settings.env_url is None:
        message = f"env_url: name the server, such as {EXAMPLE}"
        raise UsageError(message)
    return settings.env_url.split(",")

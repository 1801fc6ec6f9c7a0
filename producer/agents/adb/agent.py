"""The agent `adb`: phones and emulators behind an adb server, with the tasks of phones."""

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar, Final

from pydantic import JsonValue

from producer.agents.agent import Agent, AgentSettings
from producer.agents.android.agent import DEMO_PRESET, AndroidAgent
from producer.agents.android.demo_tasks import SHORT_TASK_IDS
from producer.errors import NotFoundError, UnreachableError, UsageError
from producer.task import Task
from schemas.distribution import install_command

if TYPE_CHECKING:
    from producer.agents.adb.server import AdbServer
    from producer.environments.environment import Environment


REAL_PRESET: Final[dict[str, JsonValue]] = {
    **DEMO_PRESET,
    "tasks": {"source_type": "ids", "task_ids": list(SHORT_TASK_IDS)},
    "eval_tasks": None,
    "max_turns": 6,
    "group_size": 4,
    "groups_per_batch": 4,
    "max_concurrent_rollouts": 4,
    "eval_episodes": 18,
    "eval_sampled_episodes": 0,
}
"""The demo policy's settings with short tasks and few episodes, because real devices are slow."""


class AdbAgent(Agent):
    """A phone or an emulator behind an adb server."""

    name = "adb"
    description = "phones over adb"
    box_type = "android"
    own_settings = frozenset({"adb_serials", "adb_server"})
    demo_preset: ClassVar[Mapping[str, JsonValue]] = REAL_PRESET
    built_policy = AndroidAgent.built_policy
    task_sources = AndroidAgent.task_sources

    def has_screen(self, settings: AgentSettings) -> bool:  # noqa: ARG002  # required by the interface
        """True: every phone has a screen."""
        return True

    def screen(self, settings: AgentSettings) -> tuple[int, int]:
        """Ask each phone for its screen's size, once per process. Raises as `check_task` does."""
        return _checked(settings.adb_server, _serials(settings))

    def most_at_once(self, settings: AgentSettings) -> int:
        """The number of phones."""
        return max(1, len(settings.adb_serials or ()))

    def make_environment(self, settings: AgentSettings) -> "Environment":
        """An environment on whichever phone has been idle longest."""
        from producer.agents.adb.environment import AdbEnvironment

        return AdbEnvironment(_server(settings.adb_server), _serials(settings))

    def release(self, device_id: str | None) -> bool:  # noqa: ARG002  # required by the interface
        """True: a phone is free once the process that used it has ended."""
        return True

    def check_task(self, settings: AgentSettings, task: Task) -> None:
        """Try the task on a simulated phone and check that every phone answers.

        Raises UnreachableError if a phone does not answer, NotFoundError if the server does not
        know a phone, and UsageError if the client library is missing, no phones are named or
        their screens differ.
        """
        _checked(settings.adb_server, _serials(settings))
        AndroidAgent().check_task(settings, task)


def _serials(settings: AgentSettings) -> tuple[str, ...]:
    if settings.adb_serials is None:
        message = "adb_serials: name the phones to use, as `adb devices` shows them"
        raise UsageError(message)
    return settings.adb_serials


def _server(address: str) -> "AdbServer":
    if find_spec("adbutils") is None:
        message = "the environment adb needs the package adbutils"
        raise UsageError(message, ways=(f"run {install_command('adb')}",))
    from producer.agents.adb.server import AdbServer

    return AdbServer(address)


@cache
def _checked(address: str, serials: tuple[str, ...]) -> tuple[int, int]:
    """Width and height of the phones' screens, px."""
    server = _server(address)
    from producer.agents.adb.check import screen_of
    from producer.agents.adb.server import READY, NoServerError, describe
    from producer.environments.environment import EnvironmentFailedError

    try:
        states = server.states()
        if unknown := [serial for serial in serials if serial not in states]:
            known = ", ".join(states) or "no phone"
            names = ", ".join(unknown)
            message = f"adb_serials: {names}: the adb server at {address} lists {known}"
            raise NotFoundError(message)
        if gone := [serial for serial in serials if states[serial] != READY]:
            problems = "; ".join(describe(serial, states[serial]) for serial in gone)
            message = f"adb_serials: {problems}"
            raise UnreachableError(message)
        screens = {serial: screen_of(server, serial) for serial in serials}
    except NoServerError as error:
        message = f"adb_server: {error}; start it with `adb start-server`"
        raise UnreachableError(message) from error
    except EnvironmentFailedError as error:
        message = f"adb_serials: {error}"
        raise UnreachableError(message) from error
    if len({*screens.values()}) > 1:
        sizes = ", ".join(f"{name} {width}x{height}" for name, (width, height) in screens.items())
        message = f"adb_serials: all phones must have the same screen size; found {sizes}"
        raise UsageError(message)
    return next(iter(screens.values()))

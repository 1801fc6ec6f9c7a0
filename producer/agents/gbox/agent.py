"""The agent `gbox`: rented GBox devices, which are Android phones or Linux desktops."""

import os
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from pydantic import JsonValue

from producer.agents.adb.agent import REAL_PRESET
from producer.agents.agent import Agent, AgentSettings
from producer.agents.android.agent import AndroidAgent
from producer.errors import CuaTrainError, NotFoundError, UnreachableError, UsageError
from producer.task import Task
from schemas.distribution import install_command

if TYPE_CHECKING:
    from producer.agents.agent import RentedDevice
    from producer.agents.gbox.service import BoxType, GboxFailedError, GboxService
    from producer.environments.environment import Environment

KEY_VARIABLE, URL_VARIABLE = "GBOX_API_KEY", "GBOX_CLIENT_BASE_URL"
NUM_AT_ONCE = 4
"""Default number of concurrent episodes, and so of boxes. Each costs money."""
SLACK_S = 3600.0
"""A box lives this much longer than its episode's actions may take, because the policy needs time
too."""
REFUSES_THE_KEY = frozenset({401, 403})
NO_TRAINING = "none"
"""Label of a box that belongs to no training: an evaluation's, or one that is only inspected."""


class GboxAgent(Agent):
    """An agent that operates a rented GBox device."""

    name = "gbox"
    description = "rented devices"
    box_type = "android"
    own_settings = frozenset({"box_type"})
    defaults: ClassVar[Mapping[str, JsonValue]] = {"max_concurrent_rollouts": NUM_AT_ONCE}
    demo_preset: ClassVar[Mapping[str, JsonValue]] = REAL_PRESET
    built_policy = AndroidAgent.built_policy
    task_sources = AndroidAgent.task_sources

    def operating_system(self, settings: AgentSettings) -> Literal["android", "linux"]:
        """The operating system that the settings ask for."""
        return settings.box_type

    def has_screen(self, settings: AgentSettings) -> bool:  # noqa: ARG002  # required by the interface
        """True: every box has a screen. Only the box itself knows its size."""
        return True

    def screen(self, settings: AgentSettings) -> tuple[int, int]:
        """Measure the screen of a box that is created and closed again, once per process.

        Raises as `check_task` does.
        """
        return _measured(account(), settings.box_type)

    def make_environment(self, settings: AgentSettings) -> "Environment":
        """A new box for each episode."""
        from producer.agents.gbox.environment import GboxEnvironment

        return GboxEnvironment(
            open_service(account()),
            settings.box_type,
            training=settings.training_name or NO_TRAINING,
            lifetime_s=settings.max_task_time_seconds + SLACK_S,
        )

    def rented_devices(self) -> "Sequence[RentedDevice]":
        """Boxes with our label. Raises as `check_task` does."""
        service = open_service(account())
        from producer.agents.gbox.service import GboxFailedError

        try:
            return service.boxes()
        except GboxFailedError as error:
            raise _refusal(error) from None

    def release(self, device_id: str | None) -> bool:
        """Close the box. Raises EnvironmentFailedError, and NotFoundError without a key."""
        if device_id is None:
            return False
        open_service(account()).close(device_id)
        return True

    def check_task(self, settings: AgentSettings, task: Task) -> None:
        """Try the task on a simulated phone and check that GBox accepts the key.

        Raises ValueError if a box of this type cannot run it, UsageError without the SDK or if
        GBox refuses the key, NotFoundError without a key, and UnreachableError if GBox does not
        answer.
        """
        _check(account())
        if settings.box_type == "android":
            AndroidAgent().check_task(settings, task)
        elif task.validation_type in {"shell", "environment"}:
            asked = task.validation_query or "its environment"
            message = (
                f"task {task.task_id} is judged by {asked}, which a Linux box does not support;"
                " give it a judge, or use box_type android"
            )
            raise ValueError(message)


OPEN: "dict[Account, GboxService]" = {}
"""The services opened by this process, by account."""


class Account(NamedTuple):
    """The account that boxes belong to."""

    key: str
    url: str | None
    """URL of the server; None for GBox's own."""


def account() -> Account:
    """The account from the environment variables.

    Raises UsageError without the SDK, NotFoundError without a key.
    """
    if find_spec("gbox_sdk") is None:
        message = "the environment gbox needs the package gbox-sdk"
        raise UsageError(message, ways=(f"run {install_command('gbox')}",))
    key = os.environ.get(KEY_VARIABLE)
    if not key:
        message = f"{KEY_VARIABLE}: no key of GBox is set; set this environment variable"
        raise NotFoundError(message)
    return Account(key, os.environ.get(URL_VARIABLE))


def open_service(whose: Account) -> "GboxService":
    """The account's service, shared by all episodes of a process."""
    from producer.agents.gbox.service import GboxService

    if whose not in OPEN:
        OPEN[whose] = GboxService(whose.key, base_url=whose.url)
    return OPEN[whose]


@cache
def _check(whose: Account) -> None:
    """Check that GBox accepts the key."""
    service = open_service(whose)
    from producer.agents.gbox.service import GboxFailedError

    try:
        service.boxes()
    except GboxFailedError as error:
        raise _refusal(error) from None


@cache
def _measured(whose: Account, box_type: "BoxType") -> tuple[int, int]:
    """Width and height of a box's screen, px."""
    service = open_service(whose)
    from producer.agents.gbox.environment import GboxEnvironment
    from producer.agents.gbox.service import GboxFailedError

    box = GboxEnvironment(service, box_type, training=NO_TRAINING, lifetime_s=SLACK_S)
    nothing = Task("screen", "Screen", "Look.", None, None, 1, None, None)
    try:
        shown = box.open(nothing, seed=0)
    except GboxFailedError as error:
        raise _refusal(error) from None
    finally:
        box.close()
    return shown.width_px, shown.height_px


def _refusal(error: "GboxFailedError") -> CuaTrainError:
    if error.status in REFUSES_THE_KEY:
        return UsageError(f"{KEY_VARIABLE}: {error}; set another key")
    return UnreachableError(f"{error}; check the network and {URL_VARIABLE}")

"""The agent `gbox`: devices rented from GBox, Android phones and Linux desktops."""

import os
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from pydantic import JsonValue

from producer.agents.adb.agent import REAL_PRESET
from producer.agents.agent import Agent, AgentSettings, MakeEnvironment
from producer.agents.android.agent import AndroidAgent
from producer.agents.task_source import TaskSource
from producer.errors import CuaTrainError, NotFoundError, UnreachableError, UsageError
from producer.task import Task
from schemas.distribution import install_command

if TYPE_CHECKING:
    from producer.agents.agent import RentedDevice
    from producer.agents.gbox.service import BoxType, GboxFailedError, GboxService
    from producer.environments.environment import Environment
    from producer.policy.learner import Learner

KEY_VARIABLE, URL_VARIABLE = "GBOX_API_KEY", "GBOX_CLIENT_BASE_URL"
NUM_AT_ONCE = 4
"""Episodes, and so boxes, by default: each costs money."""
SLACK_S = 3600.0
"""A box outlives the time limit of its episode's actions by this: the policy needs time too."""
REFUSES_THE_KEY = frozenset({401, 403})
NO_TRAINING = "none"
"""The label of a box that is no training's: an evaluation's, or one that is only looked at."""


class GboxAgent(Agent):
    """A box of GBox."""

    name = "gbox"
    description = "rented devices"
    box_type = "android"
    own_settings = frozenset({"box_type"})
    defaults: ClassVar[Mapping[str, JsonValue]] = {"max_concurrent_rollouts": NUM_AT_ONCE}
    demo_preset: ClassVar[Mapping[str, JsonValue]] = REAL_PRESET
    built_policy = AndroidAgent.built_policy
    task_sources: ClassVar[Mapping[str, TaskSource]] = AndroidAgent.task_sources

    def operating_system(self, settings: AgentSettings) -> Literal["android", "linux"]:
        """As it was asked for."""
        return settings.box_type

    def has_screen(self, settings: AgentSettings) -> bool:  # noqa: ARG002  # as the interface
        """Every box has one; how large it is, a box says."""
        return True

    def screen(self, settings: AgentSettings) -> tuple[int, int]:
        """Of a box that is created and closed again, once in a process. As `check_task`."""
        return _measured(account(), settings.box_type)

    def make_environment(self, settings: AgentSettings) -> "Environment":
        """A box of its own."""
        from producer.agents.gbox.environment import GboxEnvironment

        return GboxEnvironment(
            open_service(account()),
            settings.box_type,
            training=settings.training_name or NO_TRAINING,
            lifetime_s=settings.max_task_time_seconds + SLACK_S,
        )

    def rented_devices(self) -> "Sequence[RentedDevice]":
        """Boxes with our label. As `check_task`."""
        service = open_service(account())
        from producer.agents.gbox.service import GboxFailedError

        try:
            return service.boxes()
        except GboxFailedError as error:
            raise _refusal(error) from None

    def release(self, device_id: str | None) -> bool:
        """Close the box. EnvironmentFailedError; NotFoundError without a key."""
        if device_id is None:
            return False
        open_service(account()).close(device_id)
        return True

    def check_task(self, settings: AgentSettings, task: Task) -> None:
        """Try the task on a simulated phone; check that GBox accepts the key.

        ValueError: a box of this type cannot run it. UsageError: GBox refuses the key.
        NotFoundError: no key, or no SDK. UnreachableError: GBox does not answer.
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

    def open_oracle(  # as the interface
        self,
        settings: AgentSettings,  # noqa: ARG002
    ) -> "tuple[Learner, MakeEnvironment]":
        """There is none. UsageError."""
        message = (
            "model_name: the policy `oracle` reads a simulated phone's state, which a GBox device"
            " does not provide; use another policy"
        )
        raise UsageError(message)


OPEN: "dict[Account, GboxService]" = {}
"""The services of this process."""


class Account(NamedTuple):
    """The account that the boxes belong to."""

    key: str
    url: str | None
    """Of the server; None: GBox's own."""


def account() -> Account:
    """Of the environment. NotFoundError: no key, or no SDK."""
    if find_spec("gbox_sdk") is None:
        message = "the environment gbox needs the package gbox-sdk"
        raise NotFoundError(message, ways=(f"run {install_command('gbox')}",))
    key = os.environ.get(KEY_VARIABLE)
    if not key:
        message = f"{KEY_VARIABLE}: no key of GBox is set; set this environment variable"
        raise NotFoundError(message)
    return Account(key, os.environ.get(URL_VARIABLE))


def open_service(whose: Account) -> "GboxService":
    """One for all episodes of a process."""
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
    """Width and height, px, of a box's screen."""
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

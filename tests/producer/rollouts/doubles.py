"""Strict scripted stand-ins for a device and a policy.

They do what the test says and nothing else.
"""

import io
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from PIL import Image

from producer.environments.environment import ActionRefusedError, EnvironmentFailedError, Screenshot
from producer.policy.policy import Completion, SampleRequest
from producer.task import Task
from schemas.actions import Action, Click, Terminate
from schemas.turn import TakenAction


def picture(shade: int) -> Screenshot:
    buffer = io.BytesIO()
    Image.new("RGB", (32, 48), (shade % 256, 0, 0)).save(buffer, "PNG")
    return Screenshot(buffer.getvalue(), 32, 48)


@dataclass
class Devices:
    """Counts the devices that exist at once."""

    open_now: int = 0
    most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def changed(self, by: int) -> None:
        with self.lock:
            self.open_now += by
            self.most = max(self.most, self.open_now)


class ScriptedEnvironment:
    """A device with one setting: a click anywhere turns wifi on.

    Fails or hangs at its n-th action when told to.
    """

    env_type = "scripted"
    box_type = "android"

    def __init__(
        self, devices: Devices, *, fails_at: int = 0, hangs_at: int = 0, fails_to_open: bool = False
    ) -> None:
        self._devices = devices
        self._fails_at, self._hangs_at, self._fails_to_open = fails_at, hangs_at, fails_to_open
        self._actions = 0
        self._is_open = False
        self.wifi = False

    @property
    def provider_id(self) -> str:
        return "scripted-1"

    def open(self, task: Task, seed: int) -> Screenshot:
        assert task.description
        if self._fails_to_open:
            message = "no device left"
            raise EnvironmentFailedError(message)
        self._devices.changed(1)
        self._is_open = True
        return picture(seed)

    def act(self, action: Action) -> Screenshot:
        assert self._is_open
        self._actions += 1
        if self._actions == self._fails_at:
            message = "the device died"
            raise EnvironmentFailedError(message)
        if self._actions == self._hangs_at:
            threading.Event().wait()
        if not isinstance(action, Click):
            message = f"cannot {action.type}"
            raise ActionRefusedError(message)
        self.wifi = True
        return picture(self._actions)

    def shell(self, command: str) -> str:
        assert command == "settings get global wifi_on"
        return "1\n" if self.wifi else "0\n"

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._devices.changed(-1)


class ScriptedPolicy:
    """Says what a function of the request says.

    Remembers how big its batches were and what it was told to forget.
    """

    name = "scripted"
    version = 3

    def __init__(self, decide: Callable[[SampleRequest], Action | None]) -> None:
        self._decide = decide
        self.batches: list[int] = []
        self.forgotten: list[UUID] = []

    def sample(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        self.batches.append(len(requests))
        return [self._completion(self._decide(request)) for request in requests]

    def forget(self, episode: UUID) -> None:
        self.forgotten.append(episode)

    def _completion(self, action: Action | None) -> Completion:
        if action is None:
            taken = TakenAction(
                tool_name="?",
                tool_args={},
                action=None,
                error_type="parse",
                error_message="no action in it",
            )
            return Completion("mumble", (taken,), None)
        taken = TakenAction(
            tool_name=action.type, tool_args=action.model_dump(mode="json"), action=action
        )
        return Completion(action.type, (taken,), None)


def click_then_stop(request: SampleRequest) -> Action:
    return Terminate() if request.history else Click(x=3, y=4)


WIFI = Task("wifi", "Wifi", "Turn wifi on.", "easy", "settings", 4, "wifi_enabled", "True")

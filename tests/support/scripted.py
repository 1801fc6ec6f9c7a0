"""Strict scripted stand-ins for a device and a policy.

They do what a test scripts and nothing else.
"""

import io
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from PIL import Image

from producer.agents.android.shell_judge import JudgedByShell
from producer.environments.environment import ActionRefusedError, EnvironmentFailedError, Screenshot
from producer.policy.policy import Completion, SampledTokens, SampleRequest
from producer.rollouts.episode import EpisodeSettings
from producer.rollouts.plan import RolloutPlan, RolloutSource, StatedTask
from producer.task import Task
from producer.tasks.statements import task_facts
from schemas import ids
from schemas.actions import Action, Click, Terminate
from schemas.catalogue import stream
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


class ScriptedEnvironment(JudgedByShell):
    """A device with one setting: a click anywhere turns wifi on.

    Fails or hangs at its n-th action when told to; a hanging action ends when `released` is set.
    """

    env_type = "scripted"
    box_type = "android"

    def __init__(
        self,
        devices: Devices,
        *,
        fails_at: int = 0,
        hangs_at: int = 0,
        fails_to_open: bool = False,
        is_simulated: bool = False,
    ) -> None:
        self.is_simulated = is_simulated
        self._devices = devices
        self._fails_at, self._hangs_at, self._fails_to_open = fails_at, hangs_at, fails_to_open
        self._actions = 0
        self._is_open = False
        self.wifi = False
        self.released = threading.Event()
        self.num_closes = 0

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
            self.released.wait()
        if not isinstance(action, Click):
            message = f"cannot {action.type}"
            raise ActionRefusedError(message)
        self.wifi = True
        return picture(self._actions)

    def shell(self, command: str) -> str:
        assert command == "settings get global wifi_on"
        return "1\n" if self.wifi else "0\n"

    def close(self) -> None:
        self.num_closes += 1
        if self._is_open:
            self._is_open = False
            self._devices.changed(-1)


class ScriptedPolicy:
    """Decides by a function of the request.

    Records its batches and which episodes it was told to forget; `has_tokens`: as a network would,
    with prompts that extend each other.
    """

    name = "scripted"
    version = 3
    repeats_batches = False

    def __init__(
        self, decide: Callable[[SampleRequest], Action | None], *, has_tokens: bool = False
    ) -> None:
        self._decide = decide
        self._has_tokens = has_tokens
        self.batches: list[list[UUID]] = []
        self.forgotten: list[UUID] = []

    def sample(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        self.batches.append([request.episode for request in requests])
        return [
            self._completion(self._decide(request), self._tokens(request)) for request in requests
        ]

    def forget(self, episode: UUID) -> None:
        self.forgotten.append(episode)

    def _tokens(self, request: SampleRequest) -> SampledTokens | None:
        if not self._has_tokens:
            return None
        turn = len(request.history) + 1
        return SampledTokens(
            prompt_extends=turn - 1 or None,
            prompt_tokens=(turn, 7),
            num_prompt_images=turn,
            completion_tokens=(8,),
            completion_logprobs=(-0.5,),
            stop_reason="stop",
        )

    def _completion(self, action: Action | None, tokens: SampledTokens | None) -> Completion:
        if action is None:
            taken = TakenAction(
                tool_name="?",
                tool_args={},
                action=None,
                error_type="parse",
                error_message="no action in it",
            )
            return Completion("mumble", (taken,), tokens)
        taken = TakenAction(
            tool_name=action.type, tool_args=action.model_dump(mode="json"), action=action
        )
        return Completion(action.type, (taken,), tokens)


def click_then_stop(request: SampleRequest) -> Action:
    return Terminate() if request.history else Click(x=3, y=4)


def plan(index: int, attempt: int = 0, task: Task | None = None) -> RolloutPlan:
    task = task or WIFI
    stated, validator = task_facts(task)
    name = ids.rollout_name("t", 0, "step-1", 0, index, attempt)
    return RolloutPlan(
        name=name,
        id=ids.rollout_id(name),
        source=SOURCE,
        group_id=ids.group_id(STEP, 0),
        group_num=0,
        env_index=index,
        attempt=attempt,
        stated=StatedTask(task, stated.id, validator.id if validator else None),
        max_turns=4,
        temperature=1.0,
        seed=7,
        sampling_seed=index,
    )


WIFI = Task("wifi", "Wifi", "Turn wifi on.", "easy", "settings", 4, "wifi_enabled", "True")

TRAINING = ids.training_id("t")
STEP = ids.step_id(TRAINING, 0, 1)
SOURCE = RolloutSource("step", STEP, "step-1", 0, 0, stream("training", TRAINING))
SETTINGS = EpisodeSettings(
    training_id=TRAINING,
    max_tokens=12,
    max_task_time_seconds=1800.0,
    max_turn_time_seconds=30.0,
    turn_cost=0.02,
    parse_error_cost=0.1,
)

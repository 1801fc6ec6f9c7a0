"""One of our environments behind the interface of an OpenEnv server, and its messages."""

import base64
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from openenv.core.env_server.interfaces import Environment as ServerEnvironment
from openenv.core.env_server.types import Action, EnvironmentMetadata, State
from openenv.core.env_server.types import Observation as ServerObservation
from pydantic import ConfigDict, Field, GetJsonSchemaHandler, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from producer.codecs.json_calls import ACTION, BadCallError, action_of
from producer.environments.environment import (
    Environment,
    Observation,
    screenshot_of,
    text_of,
)
from producer.rollouts.requests import Act, Judge
from producer.task import Task
from producer.validators.verdict import Evidence
from schemas.actions import Answer, Terminate
from schemas.advice import did_you_mean
from schemas.turn import TakenAction

NOT_BEGUN = "no episode is under way; call reset first"
IS_OVER = "the episode is over; call reset to begin another"
MAX_SEED = 2**31
NUM_JUDGED_SCREENS = 3


class TypedAction(Action):  # type: ignore[misc]  # it ships no types
    """One of the actions of `schemas.actions`, as JSON: `{"type": "click", "x": 1, "y": 2}`.

    Its fields are validated when the action is performed: mistakes in them are the agent's and are
    reported by an observation.
    """

    model_config = ConfigDict(extra="allow")

    type: str

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The JSON schema of the actions themselves."""
        del core_schema
        return handler(ACTION.core_schema)

    def fields(self) -> dict[str, Any]:
        """The action's fields without those that OpenEnv adds."""
        fields: dict[str, Any] = self.model_dump(exclude={"metadata"})
        return fields


class Shown(ServerObservation):  # type: ignore[misc]  # as above
    """What an environment shows."""

    text: str | None = Field(None, description="Text; at first the task's instruction.")
    screenshot: str | None = Field(None, description="PNG in base64; null without a screen.")
    width: int | None = Field(None, description="Of the screenshot, px.")
    height: int | None = Field(None, description="Of the screenshot, px.")
    error: str | None = Field(None, description="Why the action failed and changed nothing.")


class EpisodeState(State):  # type: ignore[misc]  # as above
    """Where an episode stands."""

    task_id: str | None = None
    turn: int = 0
    """Number of actions taken."""
    max_turns: int = 0
    """Number of turns after which the episode ends and is judged."""
    seed: int | None = None


class ServedEnvironment(ServerEnvironment[TypedAction, Shown, EpisodeState]):  # type: ignore[misc]  # it ships no types
    """A session that runs one episode after another.

    An episode ends with `terminate`, with `answer` where there is no screen, when the environment
    ends it, or after the task's maximum turns. The task's validator then judges it, giving reward 1
    or 0.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(
        self, name: str, make: Callable[[], Environment], tasks: Sequence[Task], max_turns: int
    ) -> None:
        """`make` creates the environment of each episode.

        Tasks may allow fewer than `max_turns`.
        """
        super().__init__()
        self._name, self._make, self._max_turns = name, make, max_turns
        self._tasks: Mapping[str, Task] = {task.task_id: task for task in tasks}
        self._environment: Environment | None = None
        self._task: Task | None = None
        self._shown: Observation | None = None
        self._screens: list[bytes] = []
        self._actions: list[TakenAction] = []
        self._reward: float | None = None
        self._state = EpisodeState(step_count=0)

    @property
    def state(self) -> EpisodeState:
        """The state of the current episode, or of the last one."""
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        """The metadata served at `/metadata`."""
        return EnvironmentMetadata(
            name=self._name, description=f"cua-train's environment {self._name}", version=None
        )

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        task_id: str | None = None,
        **_others: Any,  # noqa: ANN401  # whatever columns a data set has
    ) -> Shown:
        """Begin an episode of this task, or of a task chosen by the seed if `task_id` is None.

        `seed` varies the device's state; None draws one at random. Other arguments, such as columns
        of a data set, are ignored. Raises ValueError for an unknown task and
        EnvironmentFailedError.
        """
        self.close()
        seed = secrets.randbelow(MAX_SEED) if seed is None else seed
        task = self._chosen(task_id, seed)
        environment = self._environment = self._make()
        self._task, self._actions, self._screens, self._reward = task, [], [], None
        self._state = EpisodeState(
            episode_id=episode_id,
            step_count=0,
            task_id=task.task_id,
            max_turns=min(task.max_steps, self._max_turns),
            seed=seed,
        )
        first = environment.open(task, seed)
        words = "\n\n".join(filter(None, (task.description, text_of(first))))
        return self._show(first, words)

    def step(self, action: TypedAction, timeout_s: float | None = None) -> Shown:  # noqa: ARG002  # required by the interface
        """Perform the action. Raises EnvironmentFailedError."""
        environment, shown = self._environment, self._shown
        if environment is None or shown is None:
            return Shown(error=NOT_BEGUN if self._task is None else IS_OVER, **self._end())
        call = self._read(action)
        acted = Act((call,), shown).perform(environment)
        (taken,) = acted.actions
        self._actions.append(taken)
        turn = self._state.turn + 1
        self._state = self._state.model_copy(update={"turn": turn, "step_count": turn})
        is_last = (
            acted.observation.is_over
            or turn >= self._state.max_turns
            or isinstance(call.action, Terminate)
            or (isinstance(call.action, Answer) and environment.box_type == "database")
            or (call.action is None and environment.ends_on_parse_error)
        )
        observation = self._show(acted.observation, text_of(acted.observation), taken.error_message)
        if not is_last:
            return observation
        self._judge(environment)
        ended: Shown = observation.model_copy(update=self._end())
        return ended

    def close(self) -> None:
        """Release the environment. Idempotent."""
        environment, self._environment = self._environment, None
        if environment is not None:
            environment.close()

    def _chosen(self, task_id: str | None, seed: int) -> Task:
        if task_id is None:
            return [*self._tasks.values()][seed % len(self._tasks)]
        if task_id not in self._tasks:
            hint = did_you_mean(task_id, self._tasks)
            message = f"no task {task_id!r} is served.{hint}"
            raise ValueError(message)
        return self._tasks[task_id]

    def _read(self, action: TypedAction) -> TakenAction:
        fields = action.fields()
        arguments = {name: value for name, value in fields.items() if name != "type"}
        screen = None if self._shown is None else screenshot_of(self._shown)
        width, height = (MAX_SEED,) * 2 if screen is None else (screen.width_px, screen.height_px)
        try:
            read, error = action_of(fields, width, height), None
        except BadCallError as mistake:
            read, error = None, str(mistake)
        except ValidationError as mistake:
            first = mistake.errors()[0]
            read, error = None, f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        return TakenAction(
            tool_name=action.type,
            tool_args=arguments,
            action=read,
            error_type=None if error is None else "tool_arg",
            error_message=error,
        )

    def _show(self, observation: Observation, text: str | None, error: str | None = None) -> Shown:
        self._shown = observation
        screen = screenshot_of(observation)
        if screen is None:
            return Shown(text=text, error=error)
        self._screens = [*self._screens, screen.png][-NUM_JUDGED_SCREENS:]
        return Shown(
            text=text,
            error=error,
            screenshot=base64.b64encode(screen.png).decode(),
            width=screen.width_px,
            height=screen.height_px,
        )

    def _judge(self, environment: Environment) -> None:
        assert self._task is not None  # noqa: S101  # an episode is under way
        evidence = Evidence(tuple(self._screens), tuple(self._actions), self._state.turn)
        try:
            verdict = Judge(self._task, evidence).perform(environment).verdict
        finally:
            self.close()
        self._reward = None if verdict is None else float(verdict.success)

    def _end(self) -> dict[str, Any]:
        return {"done": self._task is not None, "reward": self._reward}

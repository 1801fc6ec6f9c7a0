"""One episode on an OpenEnv server, judged by the server's own reward."""

from collections.abc import Sequence
from uuid import uuid4

from pydantic import JsonValue

from producer.agents.environment_server import TASK_ID
from producer.agents.openenv.client import Session, Step
from producer.agents.openenv.mappings import ActionMapping, last_words
from producer.agents.openenv.observations import picture_of, words_of
from producer.environments.environment import (
    ActionRefusedError,
    EnvironmentFailedError,
    Observation,
    Screenshot,
    TextObservation,
)
from producer.task import Task
from producer.validators.verdict import Evidence, Verdict
from schemas.actions import Action, Answer, Terminate

QUERY = "openenv_reward"
"""The query name in verdicts."""
MAX_SEED = 2**31
"""Seeds are below this, because servers may pass them to libraries that accept only 32 bits."""


class OpenEnvEnvironment:
    """A session of an OpenEnv server. Used by one thread at a time."""

    env_type = "openenv"
    box_type = "linux"
    is_simulated = False
    ends_on_parse_error = False

    def __init__(
        self,
        urls: Sequence[str],
        mapping: ActionMapping,
        screen_px: tuple[int, int] | None,
        timeout_s: float,
    ) -> None:
        """`screen_px` is the required size of screenshots; with None, screenshots are ignored."""
        self._session = Session(urls, timeout_s)
        self._mapping, self._screen_px = mapping, screen_px
        self._provider_id = ""
        self._last: Step | None = None
        self._picture: tuple[bytes, int, int] | None = None

    @property
    def provider_id(self) -> str:
        """An id that is new for each `open`; empty before it."""
        return self._provider_id

    def open(self, task: Task, seed: int) -> Observation:
        """Reset a server with this seed and with its own task id. Raises EnvironmentFailedError."""
        self.close()
        options: dict[str, JsonValue] = {"seed": seed % MAX_SEED}
        if (task_id := task.validation_config.get(TASK_ID)) is not None:
            options[self._mapping.task_argument] = task_id
        self._last = self._session.reset(options)
        self._picture = None
        self._provider_id = f"session-{uuid4().hex[:12]}"
        return self._shown(self._last, is_first=True)

    def act(self, action: Action) -> Observation:
        """Send the action. Raises ActionRefusedError, EnvironmentFailedError."""
        if self._last is None:
            message = "the session is not open"
            raise EnvironmentFailedError(message)
        if isinstance(action, Answer | Terminate):
            return self._shown(self._last)
        step = self._session.step(self._mapping.encode(action))
        error = step.observation.get("error")
        if error and self._screen_px and self._mapping.hears_the_end and not step.is_over:
            # On our own servers an error means that nothing has changed; others continue after an
            # error.
            raise ActionRefusedError(str(error))
        self._last = step
        return self._shown(step)

    def judge(self, task: Task, evidence: Evidence) -> Verdict:
        """The episode is a success if its final reward is above 0.

        Raises EnvironmentFailedError.
        """
        del task
        last = self._last
        if last is None:
            message = "the session is not open"
            raise EnvironmentFailedError(message)
        if not last.is_over:
            taken = [call.action for call in evidence.actions if call.action is not None]
            for words in last_words(self._mapping, taken):
                last = self._session.step(words)
                if last.is_over:
                    break
            self._last = last
        if last.is_over and last.reward is None:
            message = "the server ended the episode without a reward"
            raise EnvironmentFailedError(message)
        reward = last.reward or 0.0
        return Verdict(
            success=reward > 0,
            query=QUERY,
            expected=None,
            actual=f"{reward:g}",
            details={"reward": reward, "is_over": last.is_over},
        )

    def failure_facts(self, evidence: Evidence, reason: str) -> None:
        """None: a failed episode has no environment-specific events."""

    def close(self) -> None:
        """Leave the server. Idempotent."""
        self._last = None
        self._session.close()

    def _shown(self, step: Step, *, is_first: bool = False) -> Observation:
        words = words_of(step.observation, self._mapping.words, is_first=is_first)
        if self._screen_px is None:
            error = step.observation.get("error")
            return TextObservation(words, str(error) if error else None, is_over=step.is_over)
        picture = picture_of(step.observation)
        if picture is None and step.observation.get("error"):
            # BrowserGym's server reports an action's error without a screenshot, so the last one is
            # kept.
            picture = self._picture
        if picture is None:
            problem = "the server's observation has no screenshot"
            raise EnvironmentFailedError(problem)
        self._picture = png, width_px, height_px = picture
        if (width_px, height_px) != self._screen_px:
            problem = f"the server's screenshot has an unexpected size, {width_px}x{height_px} px"
            raise EnvironmentFailedError(problem)
        return Screenshot(png, width_px, height_px, text=words, is_over=step.is_over)

"""`DesktopOracle`: a scripted policy that knows each task's steps and acts with mouse and keys.

It exercises the whole system without torch. It has no tokens and no weights, so it learns nothing.
"""

from collections.abc import Sequence
from random import Random
from uuid import UUID

from producer.agents.desktop.environment import DesktopEnvironment
from producer.agents.desktop.tasks import SCREEN_PX
from producer.codecs.openai import OpenAICodec
from producer.environments.environment import EnvironmentFailedError
from producer.policy.policy import Completion, SampleRequest
from producer.policy.scripted_learner import ScriptedLearner
from schemas.actions import Action, Click, Terminate, Wait

WAIT = Wait(duration_s=0.5)
"""Waits for the window that the next step needs."""
PATIENCE = 8
"""After this many waits in a row a click is repeated, because a busy window manager may miss
one."""


class DesktopOracle(ScriptedLearner):
    """A `Learner` that takes the goal's next step, or with probability `noise` a random click.

    It sees the goal's steps and the title of the active window. Never blocks for long.
    """

    def __init__(self, *, noise: float, seed: int) -> None:
        """`noise` is the probability of a random click; raises ValueError if it is invalid."""
        super().__init__(noise=noise, seed=seed)
        self._desktops: dict[UUID, DesktopEnvironment] = {}
        self._taken: dict[UUID, int] = {}
        self._waited: dict[UUID, int] = {}
        self._codec = OpenAICodec()

    def attach(self, episode: UUID, desktop: DesktopEnvironment) -> None:
        """Let the oracle look at this episode's desktop until `forget`."""
        self._desktops[episode] = desktop
        self._taken[episode] = self._waited[episode] = 0

    def sample(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        """One action per request."""
        return [self._sample(request) for request in requests]

    def forget(self, episode: UUID) -> None:
        """Detach the episode's desktop."""
        self._desktops.pop(episode, None)
        self._taken.pop(episode, None)
        self._waited.pop(episode, None)

    def _sample(self, request: SampleRequest) -> Completion:
        random = Random(f"{self._seed}/{request.seed}")  # noqa: S311  # noise, not secrets
        width_px, height_px = SCREEN_PX
        if random.random() < self._noise:
            action: Action = Click(x=random.randrange(width_px), y=random.randrange(height_px))
        else:
            action = self._next(request.episode)
        text = self._codec.encode(action, width_px, height_px)
        return Completion(text, self._codec.parse(text, width_px, height_px), tokens=None)

    def _next(self, episode: UUID) -> Action:
        desktop = self._desktops[episode]
        if desktop.goal is None:
            return Terminate(status="failure")
        taken = self._taken[episode]
        if taken == len(desktop.goal.steps):
            return Terminate()
        step = desktop.goal.steps[taken]
        try:
            is_ready = step.window in desktop.title()
        except EnvironmentFailedError:  # the next action fails too, and records it
            is_ready = False
        if not is_ready:
            before = desktop.goal.steps[taken - 1].action
            self._waited[episode] += 1
            if self._waited[episode] % PATIENCE == 0 and isinstance(before, Click):
                return before
            return WAIT
        self._waited[episode] = 0
        self._taken[episode] = taken + 1
        return step.action

"""An environment that wraps another one and changes part of its behaviour."""

import io
from dataclasses import replace

from PIL import Image

from producer.environments.environment import Environment, Observation, Screenshot
from producer.task import Task
from producer.validators.verdict import EndFacts, Evidence, Verdict
from schemas.actions import Action


class EnvironmentWrapper:
    """Delegates everything to the inner environment. Subclasses override what they change."""

    def __init__(self, inner: Environment) -> None:
        self.inner = inner
        self.env_type = inner.env_type
        self.box_type = inner.box_type
        self.is_simulated = inner.is_simulated
        self.ends_on_parse_error = inner.ends_on_parse_error

    @property
    def provider_id(self) -> str:
        """See `Environment.provider_id`."""
        return self.inner.provider_id

    def open(self, task: Task, seed: int) -> Observation:
        """See `Environment.open`."""
        return self.inner.open(task, seed)

    def act(self, action: Action) -> Observation:
        """See `Environment.act`."""
        return self.inner.act(action)

    def judge(self, task: Task, evidence: Evidence) -> Verdict:
        """See `Environment.judge`."""
        return self.inner.judge(task, evidence)

    def failure_facts(self, evidence: Evidence, reason: str) -> EndFacts | None:
        """See `Environment.failure_facts`."""
        return self.inner.failure_facts(evidence, reason)

    def close(self) -> None:
        """See `Environment.close`."""
        self.inner.close()


def unwrapped(environment: Environment) -> Environment:
    """The innermost environment."""
    while isinstance(environment, EnvironmentWrapper):
        environment = environment.inner
    return environment


class BlankedEnvironment(EnvironmentWrapper):
    """Replaces an environment's screenshots with black ones; text is unchanged."""

    def __init__(self, inner: Environment) -> None:
        super().__init__(inner)
        self._blank: Screenshot | None = None

    def open(self, task: Task, seed: int) -> Observation:
        """Open the environment and blank the first screenshot."""
        return self._blanked(self.inner.open(task, seed))

    def act(self, action: Action) -> Observation:
        """Perform the action and blank the resulting screenshot."""
        return self._blanked(self.inner.act(action))

    def _blanked(self, screenshot: Observation) -> Observation:
        if not isinstance(screenshot, Screenshot):
            return screenshot
        if self._blank is None:
            buffer = io.BytesIO()
            Image.new("RGB", (screenshot.width_px, screenshot.height_px)).save(buffer, "PNG")
            self._blank = Screenshot(buffer.getvalue(), screenshot.width_px, screenshot.height_px)
        if screenshot.text is None and not screenshot.is_over:
            return self._blank
        return replace(self._blank, text=screenshot.text, is_over=screenshot.is_over)

"""An environment with black screenshots: the control experiment for a policy that sees nothing."""

import io

from PIL import Image

from producer.environments.environment import Environment, Observation, Screenshot
from producer.environments.wrapper import EnvironmentWrapper
from producer.task import Task
from schemas.actions import Action


class BlankedEnvironment(EnvironmentWrapper):
    """Blanks the screenshots of an environment; words stay as they are."""

    def __init__(self, inner: Environment) -> None:
        super().__init__(inner)
        self._blank: Screenshot | None = None

    def open(self, task: Task, seed: int) -> Observation:
        """A black screenshot."""
        return self._blanked(self.inner.open(task, seed))

    def act(self, action: Action) -> Observation:
        """A black screenshot."""
        return self._blanked(self.inner.act(action))

    def _blanked(self, screenshot: Observation) -> Observation:
        if not isinstance(screenshot, Screenshot):
            return screenshot
        if self._blank is None:
            buffer = io.BytesIO()
            Image.new("RGB", (screenshot.width_px, screenshot.height_px)).save(buffer, "PNG")
            self._blank = Screenshot(buffer.getvalue(), screenshot.width_px, screenshot.height_px)
        return self._blank

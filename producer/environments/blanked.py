"""An environment with black screenshots: the control experiment for a policy that sees nothing."""

import io

from PIL import Image

from producer.environments.environment import Environment, Observation, Screenshot
from producer.task import Task
from schemas.actions import Action


class BlankedEnvironment:
    """Wraps an environment and blanks its screenshots."""

    def __init__(self, inner: Environment) -> None:
        self._inner = inner
        self.env_type = inner.env_type
        self.box_type = inner.box_type
        self.is_simulated = inner.is_simulated
        self._blank: Screenshot | None = None

    @property
    def provider_id(self) -> str:
        """The wrapped environment's."""
        return self._inner.provider_id

    def open(self, task: Task, seed: int) -> Observation:
        """Open the wrapped environment; a black screenshot. Words stay as they are."""
        return self._blanked(self._inner.open(task, seed))

    def act(self, action: Action) -> Observation:
        """Act on the wrapped environment; a black screenshot."""
        return self._blanked(self._inner.act(action))

    def shell(self, command: str) -> str:
        """The wrapped environment's output."""
        return self._inner.shell(command)

    def close(self) -> None:
        """Close the wrapped environment. Idempotent."""
        self._inner.close()

    def _blanked(self, screenshot: Observation) -> Observation:
        if not isinstance(screenshot, Screenshot):
            return screenshot
        if self._blank is None:
            buffer = io.BytesIO()
            Image.new("RGB", (screenshot.width_px, screenshot.height_px)).save(buffer, "PNG")
            self._blank = Screenshot(buffer.getvalue(), screenshot.width_px, screenshot.height_px)
        return self._blank

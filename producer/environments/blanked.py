"""An environment whose screenshots are black.

What a policy does here it does without looking (a control experiment).
"""

import io

from PIL import Image

from producer.environments.environment import Environment, Screenshot
from producer.task import Task
from schemas.actions import Action


class BlankedEnvironment:
    """Passes everything through but the pictures."""

    def __init__(self, inner: Environment) -> None:
        self._inner = inner
        self.env_type = inner.env_type
        self.box_type = inner.box_type
        self._blank: Screenshot | None = None

    @property
    def provider_id(self) -> str:
        """The inner environment's."""
        return self._inner.provider_id

    def open(self, task: Task, seed: int) -> Screenshot:
        """Open the inner environment; show black."""
        return self._blanked(self._inner.open(task, seed))

    def act(self, action: Action) -> Screenshot:
        """Act on the inner environment; show black."""
        return self._blanked(self._inner.act(action))

    def shell(self, command: str) -> str:
        """The inner environment's answer."""
        return self._inner.shell(command)

    def close(self) -> None:
        """Close the inner environment."""
        self._inner.close()

    def _blanked(self, shown: Screenshot) -> Screenshot:
        if self._blank is None:
            buffer = io.BytesIO()
            Image.new("RGB", (shown.width_px, shown.height_px)).save(buffer, "PNG")
            self._blank = Screenshot(buffer.getvalue(), shown.width_px, shown.height_px)
        return self._blank

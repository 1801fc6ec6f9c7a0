"""`GboxEnvironment`: a new GBox device for each episode."""

import logging
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from producer.agents.android.shell_judge import JudgedByShell
from producer.agents.gbox.gestures import perform
from producer.agents.gbox.service import Box, BoxType, GboxFailedError, GboxService
from producer.environments.environment import (
    ActionRefusedError,
    EnvironmentFailedError,
    Screenshot,
)
from producer.environments.screens import as_screenshot, settled
from producer.task import Task
from schemas import actions
from schemas.actions import Action

logger = logging.getLogger(__name__)

COMMAND_LIMIT = "30s"
REFUSED = frozenset({400, 422})
"""HTTP statuses for an action that a box cannot perform."""
REFUSED_APP = REFUSED | {404}
"""HTTP statuses for an app that a box does not have."""


class GboxEnvironment(JudgedByShell):
    """A new box for one episode, closed at its end. Not thread-safe.

    After a failure every call except `close` raises EnvironmentFailedError.
    """

    env_type = "gbox"
    is_simulated = False

    def __init__(
        self, service: GboxService, box_type: BoxType, *, training: str, lifetime_s: float
    ) -> None:
        """`training` is the name for the label. GBox deletes the box after `lifetime_s`."""
        self.box_type: str = box_type
        self._service = service
        self._box_type = box_type
        self._training = training
        self._lifetime_s = lifetime_s
        self._box: Box | None = None
        self._failure: str | None = None
        self._provider_id = ""
        self._screen_px = (0, 0)

    @property
    def provider_id(self) -> str:
        """The box's id; empty before `open`."""
        return self._provider_id

    def open(self, task: Task, seed: int) -> Screenshot:  # noqa: ARG002  # a box has no variants
        """Create a box, run `task.setup` and return the screen. Raises EnvironmentFailedError."""
        self.close()
        self._box = self._service.create(self._box_type, self._training, self._lifetime_s)
        self._provider_id = self._box.data.id
        for command in task.setup:
            status, printed = self._run(command)
            if status != 0:
                message = (
                    f"set-up of {task.task_id} failed: {command!r} printed {printed.strip()!r}"
                )
                raise EnvironmentFailedError(message)
        return self._screenshot()

    def act(self, action: Action) -> Screenshot:
        """Perform the action and return the screen once it has settled.

        Raises ActionRefusedError, EnvironmentFailedError.
        """
        box = self._require_up()
        refused = REFUSED_APP if isinstance(action, actions.OpenApp) else REFUSED
        with self._failing_to(f"do {action.type} on box {self._provider_id}", refused):
            perform(box, action, *self._screen_px)
        if isinstance(action, actions.Wait):
            time.sleep(action.duration_s)
        return self._screenshot()

    def shell(self, command: str) -> str:
        """Run a shell command and return its output. Raises EnvironmentFailedError."""
        return self._run(command)[1]

    def close(self) -> None:
        """Close the box. Idempotent. A box that cannot be closed is deleted when it expires."""
        box, self._box = self._box, None
        self._failure = None
        if box is None:
            return
        try:
            self._service.close(box.data.id)
        except GboxFailedError as error:
            logger.warning("%s; GBox deletes it when it expires", error)

    def _require_up(self) -> Box:
        if self._box is None:
            message = "the box is not running: open() was not called, or close() was"
            raise EnvironmentFailedError(message)
        if self._failure is not None:
            raise EnvironmentFailedError(self._failure)
        return self._box

    @contextmanager
    def _failing_to(self, what: str, refused: Collection[int] = ()) -> Iterator[None]:
        """Remember failures in the block. HTTP statuses in `refused` raise ActionRefusedError."""
        try:
            with self._service.failing_to(what):
                yield
        except GboxFailedError as error:
            if error.status in refused:
                raise ActionRefusedError(str(error)) from error
            self._failure = str(error)
            raise

    def _run(self, command: str) -> tuple[int, str]:
        """Run a command: its exit status, and combined stdout and stderr."""
        box = self._require_up()
        with self._failing_to(f"run {command!r} on box {self._provider_id}"):
            done = box.command(command, timeout=COMMAND_LIMIT)
            return int(done.exit_code), f"{done.stdout}{done.stderr}"

    def _picture(self) -> bytes:
        box = self._require_up()
        with self._failing_to(f"take a screenshot of box {self._provider_id}"):
            return self._service.screenshot(box.data.id)

    def _screenshot(self) -> Screenshot:
        shown = as_screenshot(settled(self._picture), f"box {self._provider_id}")
        self._screen_px = shown.width_px, shown.height_px
        return shown

"""`AdbEnvironment`: a phone or an emulator behind an adb server."""

import time
from collections.abc import Sequence

from producer.agents.adb.gestures import PACKAGE, commands
from producer.agents.adb.leases import Lease, lease
from producer.agents.adb.server import AdbServer, Printed
from producer.agents.android.shell_judge import JudgedByShell
from producer.environments.environment import (
    ActionRefusedError,
    EnvironmentFailedError,
    Screenshot,
)
from producer.environments.screens import as_screenshot, settled
from producer.task import Task
from schemas import actions
from schemas.actions import Action

BEGIN = (
    "input keyevent KEYCODE_WAKEUP",
    "wm dismiss-keyguard",
    "cmd statusbar collapse",
)
"""Commands that precede an episode: turn the screen on, dismiss a lock screen without a code, and
close panels."""
HOME = "input keyevent KEYCODE_HOME"


class AdbEnvironment(JudgedByShell):
    """One of the phones in `serials`, for one episode. Not thread-safe.

    A phone is not reset: the task's app is stopped, the home screen is shown and the task's set-up
    is run. After a failure every call except `close` raises EnvironmentFailedError.
    """

    env_type = "adb"
    box_type = "android"
    is_simulated = False

    def __init__(self, server: AdbServer, serials: Sequence[str]) -> None:
        self._server = server
        self._serials = tuple(serials)
        self._lease: Lease | None = None
        self._failure: str | None = None
        self._provider_id = ""
        self._screen_px = (0, 0)

    @property
    def provider_id(self) -> str:
        """The phone's serial; empty before `open`."""
        return self._provider_id

    def open(self, task: Task, seed: int) -> Screenshot:  # noqa: ARG002  # a phone has no variants
        """Take a free phone, go to its home screen, run `task.setup` and return a screenshot.

        Raises EnvironmentFailedError if no phone is free and connected, or if a command fails.
        """
        self.close()
        self._lease = lease(self._server, self._serials)
        self._provider_id = self._lease.serial
        for command in BEGIN:
            self._run(command)
        if task.app_name is not None and PACKAGE.fullmatch(task.app_name):
            self._require(f"am force-stop {task.app_name}", task)
        self._require(HOME, task)
        for command in task.setup:
            self._require(command, task)
        return self._screenshot()

    def act(self, action: Action) -> Screenshot:
        """Perform the action and return the screen once it has settled.

        Raises ActionRefusedError, EnvironmentFailedError.
        """
        self._require_up()
        for command in commands(action, *self._screen_px):
            printed = self._run(command)
            if isinstance(action, actions.OpenApp) and ("Error" in printed.text or printed.status):
                message = f"{action.package} cannot be started: it is no app, or not installed"
                raise ActionRefusedError(message)
            if printed.status != 0:
                message = f"{command!r} failed: {printed.text.strip()!r}"
                raise EnvironmentFailedError(message)
        if isinstance(action, actions.Wait):
            time.sleep(action.duration_s)
        return self._screenshot()

    def shell(self, command: str) -> str:
        """Run a shell command and return its output. Raises EnvironmentFailedError."""
        return self._run(command).text

    def close(self) -> None:
        """Give the phone back in its current state. Idempotent."""
        held, self._lease = self._lease, None
        self._failure = None
        if held is not None:
            held.end()

    def _require_up(self) -> str:
        """The phone's serial. Raises EnvironmentFailedError if no phone is in use."""
        if self._lease is None:
            message = "the phone is not in use: open() was not called, or close() was"
            raise EnvironmentFailedError(message)
        if self._failure is not None:
            raise EnvironmentFailedError(self._failure)
        return self._lease.serial

    def _run(self, command: str) -> Printed:
        serial = self._require_up()
        try:
            return self._server.run(serial, command)
        except EnvironmentFailedError as error:
            self._failure = str(error)
            raise

    def _require(self, command: str, task: Task) -> None:
        printed = self._run(command)
        if printed.status != 0:
            message = (
                f"set-up of {task.task_id} failed: {command!r} printed {printed.text.strip()!r}"
            )
            raise EnvironmentFailedError(message)

    def _screenshot(self) -> Screenshot:
        picture = settled(lambda: self._run("screencap -p").stdout)
        shown = as_screenshot(picture, f"phone {self._provider_id}")
        self._screen_px = shown.width_px, shown.height_px
        return shown

"""`DesktopEnvironment`: a display, a home folder and applications for one episode."""

import time
from typing import Final
from uuid import uuid4

from producer.agents.desktop.gestures import perform
from producer.agents.desktop.screen import Screen
from producer.agents.desktop.session import ANSWER_LIMIT_S, Session
from producer.agents.desktop.tasks import SCREEN_PX, SOURCE, Goal, goal_of
from producer.environments.environment import EnvironmentFailedError, Screenshot
from producer.environments.screens import settled
from producer.task import Task
from producer.validators.verdict import Evidence, Verdict
from schemas.actions import Action

START_S: Final = 10.0
"""Time limit for the window manager to draw its task bar."""
BETWEEN_S: Final = 0.1
"""Pause between two screenshots that are compared, because applications draw after the input."""


class DesktopEnvironment:
    """A fresh desktop for one episode. Not thread-safe.

    After a failure every call except `close` raises EnvironmentFailedError.
    """

    env_type = "desktop"
    box_type = "linux"
    is_simulated = False
    ends_on_parse_error = False

    def __init__(self, limit_s: float = ANSWER_LIMIT_S) -> None:
        """A display or an application's command that takes longer than `limit_s` has failed."""
        self._limit_s = limit_s
        self._session: Session | None = None
        self._screen: Screen | None = None
        self._goal: Goal | None = None
        self._failure: str | None = None
        self._provider_id = ""

    @property
    def provider_id(self) -> str:
        """An id that is new for each `open`; empty before it."""
        return self._provider_id

    @property
    def session(self) -> Session:
        """The desktop's processes, for tests. Raises EnvironmentFailedError."""
        return self._up()[0]

    @property
    def goal(self) -> Goal | None:
        """The goal, for the oracle; None if the task is none of ours."""
        return self._goal

    def open(self, task: Task, seed: int) -> Screenshot:
        """Start a desktop; the first screenshot carries the instruction as its text.

        Raises EnvironmentFailedError.
        """
        self.close()
        self._goal = goal_of(task.task_id, seed) if task.source_type == SOURCE else None
        self._session = session = Session(SCREEN_PX, self._limit_s)
        self._provider_id = f"desktop-{uuid4().hex[:12]}"
        try:
            self._screen = screen = Screen(session, SCREEN_PX)
            for command in (*(self._goal.setup if self._goal else ()), *task.setup):
                _require(session, command, task)
            _await_window_manager(screen)
        except EnvironmentFailedError:
            self.close()
            raise
        return self._shown(self._goal.instruction if self._goal else None)

    def act(self, action: Action) -> Screenshot:
        """Perform the action and return the screen once it has settled.

        Raises ActionRefusedError, EnvironmentFailedError.
        """
        _, screen = self._up()
        perform(screen, action, *SCREEN_PX)
        return self._shown(None)

    def shell(self, command: str) -> str:
        """Run a shell command in the home folder and return its output.

        Raises EnvironmentFailedError.
        """
        session, _ = self._up()
        return session.run(command)[1]

    def title(self) -> str:
        """Title of the active window, for the oracle. Raises EnvironmentFailedError."""
        return self._up()[1].title()

    def judge(self, task: Task, evidence: Evidence) -> Verdict:  # noqa: ARG002  # judged by state alone
        """Judge by the output of the goal's query. Raises ValueError, EnvironmentFailedError."""
        session, _ = self._up()
        if self._goal is None:
            message = f"task {task.task_id} cannot be judged: it is none of the desktop's"
            raise ValueError(message)
        session.check()
        actual = self.shell(self._goal.query).strip()
        return Verdict(
            success=actual == self._goal.expected,
            query=self._goal.query,
            expected=self._goal.expected,
            actual=actual,
            details={"commands": [self._goal.query]},
        )

    def failure_facts(self, evidence: Evidence, reason: str) -> None:
        """None: a failed episode has no environment-specific events."""

    def close(self) -> None:
        """End everything on the desktop. Idempotent."""
        session, self._session = self._session, None
        screen, self._screen = self._screen, None
        if screen is not None:
            screen.close()
        if session is not None:
            session.close()

    def _up(self) -> tuple[Session, Screen]:
        if self._session is None or self._screen is None:
            message = "the desktop is not running: open() was not called, or close() was"
            raise EnvironmentFailedError(message)
        return self._session, self._screen

    def _shown(self, text: str | None) -> Screenshot:
        session, screen = self._up()
        picture = settled(screen.picture, between_s=BETWEEN_S)
        session.check()
        shown = screen.as_screenshot(picture)
        return Screenshot(shown.png, shown.width_px, shown.height_px, text=text)


def _require(session: Session, command: str, task: Task) -> None:
    status, printed = session.run(command)
    if status != 0:
        message = f"set-up of {task.task_id} failed: {command!r} printed {printed.strip()!r}"
        raise EnvironmentFailedError(message)


def _await_window_manager(screen: Screen) -> None:
    """Wait until the window manager has drawn its bar. Before that the screen is black."""
    until_s = time.monotonic() + START_S
    while not any(screen.picture()):
        if time.monotonic() > until_s:
            message = f"the window manager drew nothing within {START_S:g} s"
            raise EnvironmentFailedError(message)
        time.sleep(BETWEEN_S)

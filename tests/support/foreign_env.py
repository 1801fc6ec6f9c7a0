"""An environment of somebody else, written with OpenEnv's own classes."""

import os
import threading
from typing import Any

from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State

PICTURE = [[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [9, 9, 9]], [[1, 2, 3], [4, 5, 6]]]
"""Two pixels wide, three high."""


RELEASED = threading.Event()
"""Ends `hang`."""


class Said(Action):  # type: ignore[misc]  # it ships no types
    message: str


class Heard(Observation):  # type: ignore[misc]  # as above
    text: str
    screenshot: list[list[list[int]]] | None = None


class EchoEnvironment(Environment[Said, Heard, State]):  # type: ignore[misc]  # as above
    """Repeats what it hears; `win` earns 0.5 and ends the episode, other words earn nothing."""

    SUPPORTS_CONCURRENT_SESSIONS = True
    shows_pictures = False

    def __init__(self) -> None:
        super().__init__()
        self.asked: dict[str, Any] = {}
        self._state = State(step_count=0)

    @property
    def state(self) -> State:
        return self._state

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, task_id: str = "any"
    ) -> Heard:
        self._state = State(episode_id=episode_id, step_count=0)
        return self._heard(f"task {task_id}, seed {seed}")

    def step(self, action: Said, timeout_s: float | None = None) -> Heard:  # noqa: ARG002  # as above
        self._state.step_count += 1
        match action.message:
            case "win":
                return self._heard("won", reward=0.5, done=True)
            case "lose":
                return self._heard("lost", reward=-1.0, done=True)
            case "stop":
                return self._heard("stopped", done=True)
            case "die":
                os._exit(1)
            case "fail":
                raise RuntimeError(action.message)
            case "hang":
                RELEASED.wait()
            case _:
                pass
        return self._heard(action.message, reward=0.0)

    def _heard(self, text: str, *, reward: float | None = None, done: bool = False) -> Heard:
        screenshot = PICTURE if self.shows_pictures else None
        return Heard(text=text, screenshot=screenshot, reward=reward, done=done)


class PictureEnvironment(EchoEnvironment):
    shows_pictures = True


class Called(Action):  # type: ignore[misc]  # as above
    action_str: str


class Page(Heard):
    goal: str = ""
    error: str = ""


class BrowserEnvironment(Environment[Called, Page, State]):  # type: ignore[misc]  # as above
    """Behaves as the server of BrowserGym in OpenEnv's catalogue does."""

    @property
    def state(self) -> State:
        return State(step_count=0)

    def reset(self, seed: int | None = None, task_name: str | None = None) -> Page:  # noqa: ARG002  # as above
        return Page(text="tree", goal=f"Do {task_name}.", screenshot=PICTURE, reward=0.0)

    def step(self, action: Called) -> Page:
        match action.action_str:
            case "mouse_click(1, 1, button='left')":
                return Page(text="tree", goal="Do.", screenshot=PICTURE, done=True, reward=1.0)
            case "noop(0)":
                return Page(text="tree", goal="Do.", screenshot=PICTURE, reward=0.0)
            case _:
                return Page(text="tree", goal="Do.", error="no such thing", reward=0.0)


def browser_app() -> Any:
    """Its application."""
    return create_fastapi_app(BrowserEnvironment, Called, Page)


def echo_app(max_sessions: int = 8, *, pictures: bool = False) -> Any:
    """Its application."""
    kind = PictureEnvironment if pictures else EchoEnvironment
    return create_fastapi_app(kind, Said, Heard, max_concurrent_envs=max_sessions)


if __name__ == "__main__":
    import sys

    import uvicorn

    uvicorn.run(echo_app(), port=int(sys.argv[1]), log_level="error")

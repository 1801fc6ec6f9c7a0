"""The FastAPI application of an OpenEnv server."""

from typing import TYPE_CHECKING

from fastapi.responses import JSONResponse
from openenv.core.env_server.http_server import create_fastapi_app

from producer.config import RunConfig
from producer.env_server.environment import EpisodeState, ServedEnvironment, Shown, TypedAction
from producer.environments.environment import EnvironmentFailedError
from producer.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fastapi import FastAPI, Request, Response


def make_app(config: RunConfig, tasks: "Sequence[Task]", max_sessions: int) -> "FastAPI":
    """Create an application that serves these tasks, in up to `max_sessions` sessions at once."""
    agent = config.agent

    def make() -> ServedEnvironment:
        return ServedEnvironment(
            agent.name, lambda: agent.make_environment(config), tasks, config.max_turns
        )

    app: FastAPI = create_fastapi_app(
        make,
        TypedAction,
        Shown,
        max_concurrent_envs=max_sessions,
        env_name=agent.name,
        state_cls=EpisodeState,
        mode="simulation",
    )
    for kind, status in ((ValueError, 422), (EnvironmentFailedError, 503)):
        app.add_exception_handler(kind, _answer_with(status))
    return app


def _answer_with(status: int) -> "Callable[[Request, Exception], Response]":
    """Handler for errors of HTTP requests; over the WebSocket, OpenEnv reports errors itself."""

    def answer(_request: "Request", error: Exception) -> "Response":
        return JSONResponse({"detail": str(error)}, status)

    return answer

"""A session with one of several OpenEnv servers, through OpenEnv's own client."""

import os
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn

from pydantic import JsonValue

from producer.agents.environment_server import TOKEN
from producer.bounded_text import cut
from producer.environments.environment import EnvironmentFailedError

if TYPE_CHECKING:
    from openenv.core import SyncEnvClient

CONNECT_S: Final = 10.0
FULL, INVALID = "CAPACITY_REACHED", "VALIDATION_ERROR"
"""Error codes of OpenEnv's protocol."""
WAIT_S: Final = 0.2


class NoServerError(EnvironmentFailedError):
    """Nothing answers at the URL, or not with OpenEnv's protocol."""


class NoRoomError(EnvironmentFailedError):
    """The server already has its maximum number of sessions."""


class WrongActionError(EnvironmentFailedError):
    """The server does not accept actions of this form."""


@dataclass(frozen=True, slots=True)
class Step:
    """A server's answer."""

    observation: dict[str, Any]
    reward: float | None
    is_over: bool


class Session:
    """One session. Used by one thread at a time. Every failure raises EnvironmentFailedError."""

    def __init__(self, urls: Sequence[str], timeout_s: float) -> None:
        """Servers in `urls` are tried in random order; the first one with room is used.

        `timeout_s` limits each answer, and the wait for room.
        """
        self._urls, self._timeout_s = tuple(urls), timeout_s
        self._client: SyncEnvClient[Any, Any, Any] | None = None
        self._url = ""

    def reset(self, options: dict[str, JsonValue]) -> Step:
        """Begin an episode, with these arguments for the server's `reset`."""
        until_s = time.monotonic() + self._timeout_s
        while True:
            failures: list[EnvironmentFailedError] = []
            for url in secrets.SystemRandom().sample(self._urls, len(self._urls)):
                try:
                    return self._begin(url, options)
                except (NoRoomError, NoServerError) as error:
                    failures.append(error)
            full = [error for error in failures if isinstance(error, NoRoomError)]
            if not full or time.monotonic() >= until_s:
                raise failures[0]
            # An abandoned session keeps its place until the server has cleaned up.
            time.sleep(WAIT_S)

    def step(self, message: dict[str, JsonValue]) -> Step:
        """Send the action to the server and return its answer."""
        client = self._client
        if client is None:
            problem = "the session is not open"
            raise EnvironmentFailedError(problem)
        return self._answer(lambda: client.step(message))

    def close(self) -> None:
        """Leave the server. Idempotent; raises nothing."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):
                client.close()

    def _begin(self, url: str, options: dict[str, JsonValue]) -> Step:
        from openenv.core import GenericEnvClient

        self.close()
        token = os.environ.get(TOKEN)
        client = GenericEnvClient(
            base_url=url,
            connect_timeout_s=CONNECT_S,
            message_timeout_s=self._timeout_s,
            mode="simulation",
            headers=None if not token else {"Authorization": f"Bearer {token}"},
        ).sync()
        self._url, self._client = url, client
        try:
            client.connect()
        except Exception as error:  # noqa: BLE001  # errors of sockets, TLS, HTTP and OpenEnv
            self.close()
            problem = f"{url} cannot be reached: {_reason(error)}"
            raise NoServerError(problem) from None
        try:
            return self._answer(lambda: client.reset(**options))
        except EnvironmentFailedError:
            self.close()
            raise

    def _answer(self, ask: Callable[[], Any]) -> Step:
        try:
            result = ask()
        except Exception as error:  # noqa: BLE001  # errors of sockets, JSON and OpenEnv
            self._fail(error)
        if not isinstance(result.observation, dict) or not result.observation:
            self._fail(ValueError("it sent no observation"))
        return Step(
            result.observation,
            None if result.reward is None else float(result.reward),
            bool(result.done),
        )

    def _fail(self, error: Exception) -> NoReturn:
        if isinstance(error, TimeoutError):
            problem = f"{self._url} did not answer within {self._timeout_s:g} s"
            raise EnvironmentFailedError(problem) from None
        if isinstance(error, ValueError | TypeError | AttributeError):
            problem = f"{self._url} does not speak OpenEnv's protocol: {_reason(error)}"
            raise NoServerError(problem) from None
        problem = f"{self._url}: {_reason(error)}"
        if FULL in problem:
            raise NoRoomError(problem) from None
        if INVALID in problem:
            raise WrongActionError(problem) from None
        raise EnvironmentFailedError(problem) from None


def _reason(error: Exception) -> str:
    """The cause in one line. OpenEnv's own message for a failed connection repeats the URL."""
    cause = error.__cause__ or error
    return cut(" ".join(str(cause).split()) or type(cause).__name__)

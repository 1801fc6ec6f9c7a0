"""What is wrong with a server or its settings is said before the first event."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from producer.agents import environment_server
from tests.support.cua_train import CuaTrain
from tests.support.env_servers import served_here
from tests.support.foreign_env import echo_app

RUN = ("run", "--environment", "openenv", "--model-name", "some/policy", "--no-monitor")
TOKENS: list[str | None] = []
ReadLog = Callable[[], list[dict[str, Any]]]


@contextmanager
def talking(answer: str) -> Iterator[str]:
    """A WebSocket server of another protocol. It keeps the tokens that it gets in `TOKENS`."""

    def talk(connection: ServerConnection) -> None:
        assert connection.request is not None
        TOKENS.append(connection.request.headers.get("Authorization"))
        with suppress(ConnectionClosed):
            for _ in connection:
                connection.send(answer)

    with serve(talk, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        server.shutdown()


def test_what_is_wrong_with_a_server_is_said_before_anything_is_recorded(
    cua_train: CuaTrain, read_log: ReadLog
) -> None:
    def refused(url: str, *words: str, expected: int = 2) -> str:
        return cua_train(*RUN, "--env-url", url, *words, expected=expected).stderr

    text = ("--env-actions", "text")
    with served_here(echo_app()) as words, served_here(echo_app(pictures=True)) as pictures:
        assert "env_actions: the server does not accept computer actions" in refused(words)
        assert "env_screen: the server sends no screenshots" in refused(
            words, *text, "--env-screen", "2x3"
        )
        assert "env_screen: the server's screenshots are 2x3; give this size" in refused(pictures)
        wrong_size = (*text, "--env-screen", "3x2")
        assert "screenshots are 2x3" in refused(pictures, *wrong_size)
    for answer in ("hello", "[]", json.dumps({"type": "welcome"})):
        with talking(answer) as url:
            assert "does not speak OpenEnv's protocol" in refused(url, *text, expected=5)
    assert read_log() == []


def test_a_server_gets_the_token_and_no_message_does(
    cua_train: CuaTrain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUA_OPENENV_TOKEN", "very-secret")
    TOKENS.clear()
    with talking("hello") as url:
        assert "very-secret" not in cua_train(*RUN, "--env-url", url, expected=5).stderr
    assert TOKENS == ["Bearer very-secret"]


def test_a_missing_package_is_said(cua_train: CuaTrain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment_server, "find_spec", lambda _name: None)
    stderr = cua_train(*RUN, "--env-url", "ws://127.0.0.1:9", expected=2).stderr
    assert "'.[openenv]'" in stderr
    assert "'.[openenv]'" in cua_train("env", "serve", expected=2).stderr


def test_a_task_of_the_phone_is_no_servers(cua_train: CuaTrain) -> None:
    words = ("--env-url", "ws://127.0.0.1:9", "--tasks", '{"source_type": "demo_training"}')
    assert 'use {"source_type": "openenv"}' in cua_train(*RUN, *words, expected=2).stderr


def test_the_settings_are_of_no_other_environment(cua_train: CuaTrain) -> None:
    stderr = cua_train("run", "--env-url", "ws://127.0.0.1:9", expected=2).stderr
    assert "env_url: only for environment openenv; omit it" in stderr


def test_the_scripted_policy_does_not_know_a_servers_tasks(cua_train: CuaTrain) -> None:
    with served_here(echo_app()) as url:
        words = ("--env-url", url, "--env-actions", "text", "--model-name", "oracle")
        assert "not those of an OpenEnv server" in cua_train(*RUN, *words, expected=2).stderr

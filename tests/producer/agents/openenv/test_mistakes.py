"""What is wrong with a server or its settings is said before the first event."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
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


@pytest.mark.parametrize(
    ("words", "expected", "said"),
    [
        ((), 2, "env_url: name the server"),
        (("--env-url", "nonsense"), 2, "env_url: this is no URL"),
        (("--env-url", "ws://me:secret@h:1"), 2, "CUA_OPENENV_TOKEN"),
        (("--env-url", "ws://127.0.0.1:9"), 5, "env_url: ws://127.0.0.1:9 cannot be reached"),
        (("--env-url", "ws://h:1", "--env-screen", "big"), 2, "env_screen: 'big' is no size"),
    ],
)
def test_a_wrong_url_is_said(
    cua_train: CuaTrain, read_log: ReadLog, words: tuple[str, ...], expected: int, said: str
) -> None:
    stderr = cua_train(*RUN, *words, expected=expected).stderr
    assert said in stderr
    assert "secret" not in stderr
    assert read_log() == []


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


def test_a_server_of_plain_http_is_no_server(cua_train: CuaTrain) -> None:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        stderr = cua_train(*RUN, "--env-url", url, expected=5).stderr
        assert f"{url.replace('http', 'ws')} cannot be reached" in stderr
        server.shutdown()


def test_a_missing_package_is_said(cua_train: CuaTrain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment_server, "find_spec", lambda _name: None)
    stderr = cua_train(*RUN, "--env-url", "ws://127.0.0.1:9", expected=3).stderr
    assert "'.[openenv]'" in stderr
    assert "'.[openenv]'" in cua_train("env", "serve", expected=3).stderr


def test_a_task_of_the_phone_is_no_servers(cua_train: CuaTrain) -> None:
    words = ("--env-url", "ws://127.0.0.1:9", "--tasks", '{"source_type": "demo_training"}')
    assert 'use {"source_type": "openenv"}' in cua_train(*RUN, *words, expected=2).stderr


def test_the_settings_are_of_no_other_environment(cua_train: CuaTrain) -> None:
    stderr = cua_train("run", "--env-url", "ws://127.0.0.1:9", expected=2).stderr
    assert "env_url: only of environment openenv; omit it" in stderr


def test_the_scripted_policy_does_not_know_a_servers_tasks(cua_train: CuaTrain) -> None:
    with served_here(echo_app()) as url:
        words = ("--env-url", url, "--env-actions", "text", "--model-name", "oracle")
        assert "not those of an OpenEnv server" in cua_train(*RUN, *words, expected=2).stderr

"""What is wrong with a device, a page or a server is said by the command, before any event."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from producer.agents.gbox import service
from tests.support.adb_server import adb_server
from tests.support.cua_train import CuaTrain, cua_train
from tests.support.gbox_server import KEY, gbox_server

__all__ = ["cua_train"]

RUN = ("run", "--model-name", "some/policy", "--no-monitor", "--environment")
NOBODY = "127.0.0.1:9"
WIFI = ("--tasks", '{"source_type": "ids", "task_ids": ["train_02_enable_wifi"]}')
REFUSED: dict[str, tuple[tuple[str, ...], int, str]] = {
    "no server": (("openenv",), 2, "env_url: name the server"),
    "no URL": (("openenv", "--env-url", "nonsense"), 2, "env_url: this is no URL"),
    "a URL with a password": (
        ("openenv", "--env-url", "ws://me:secret@h:1"),
        2,
        "CUA_OPENENV_TOKEN",
    ),
    "no size": (
        ("openenv", "--env-url", "ws://h:1", "--env-screen", "big"),
        2,
        "env_screen: 'big' is no size",
    ),
    "a server that is gone": (
        ("openenv", "--env-url", f"ws://{NOBODY}"),
        5,
        f"env_url: ws://{NOBODY} cannot be reached",
    ),
    "a web server": (
        ("openenv", "--env-url", "http://@stranger"),
        5,
        "@stranger cannot be reached",
    ),
    "no key": (("gbox", *WIFI), 3, "GBOX_API_KEY: no key of GBox is set"),
    "a wrong key": (("gbox", "key=secret", "url=@gbox", *WIFI), 2, "GBOX_API_KEY: GBox could not"),
    "GBox gone": (
        ("gbox", f"key={KEY}", f"url={NOBODY}", *WIFI),
        5,
        "check the network and GBOX_CLIENT_BASE_URL",
    ),
    "no GBox": (
        ("gbox", f"key={KEY}", "url=@stranger", *WIFI),
        5,
        "check the network and GBOX_CLIENT_BASE_URL",
    ),
    "a box without queries": (
        ("gbox", "--box-type", "linux", f"key={KEY}", "url=@gbox", *WIFI),
        2,
        "which a Linux box does not support",
    ),
    "no phone named": (("adb", *WIFI), 2, "adb_serials: name the phones to use"),
    "an unknown phone": (
        ("adb", "--adb-server", "@adb", "--adb-serials", "three", *WIFI),
        3,
        "adb_serials: three: the adb server at @adb lists one, two",
    ),
    "a phone that is gone": (
        ("adb", "--adb-server", "@adb", "--adb-serials", "one,two", *WIFI),
        5,
        "adb_serials: phone two is offline: connect it again",
    ),
    "no adb server": (
        ("adb", "--adb-server", NOBODY, "--adb-serials", "one", *WIFI),
        5,
        f"adb_server: no adb server answers at {NOBODY}",
    ),
    "another server than adb's": (
        ("adb", "--adb-server", "@stranger", "--adb-serials", "one", *WIFI),
        5,
        "adb_server: no adb server answers at @stranger",
    ),
    "an unknown page": (
        ("miniwob", "--tasks", '{"source_type": "miniwob", "names": ["click-tset-2"]}'),
        2,
        "no page is called 'click-tset-2'. Did you mean 'click-test-2'",
    ),
    "an unknown task": (
        ("desktop", "--tasks", '{"source_type": "desktop", "names": ["write-nte"]}'),
        2,
        "no task is called 'write-nte'. Did you mean 'write-note'",
    ),
}


class Stranger(socketserver.BaseRequestHandler):
    """Answers whatever it is asked with a web page."""

    def handle(self) -> None:
        self.request.recv(4096)
        self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")


@contextmanager
def stranger() -> Iterator[str]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Stranger) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture
def addresses(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Of servers, by the word that stands for them in the table."""
    monkeypatch.setattr(service, "NUM_RETRIES", 0)
    with ExitStack() as stack:
        phones = stack.enter_context(adb_server("one", "two"))
        phones.phones["two"].state = "offline"
        boxes = stack.enter_context(gbox_server())
        yield {
            "@adb": phones.address,
            "@gbox": boxes.url.removeprefix("http://"),
            "@stranger": stack.enter_context(stranger()),
        }


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_device_that_cannot_be_used_leaves_no_event(
    mistake: str,
    addresses: dict[str, str],
    cua_train: CuaTrain,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    words, code, message = REFUSED[mistake]

    def filled(text: str) -> str:
        for name, address in addresses.items():
            text = text.replace(name, address)
        return text

    given = []
    for word in map(filled, words):
        name, _, value = word.partition("=")
        if name == "key":
            monkeypatch.setenv("GBOX_API_KEY", value)
        elif name == "url":
            monkeypatch.setenv("GBOX_CLIENT_BASE_URL", f"http://{value}")
        else:
            given.append(word)
    stderr = cua_train(*RUN, *given, expected=code).stderr
    assert filled(message) in stderr
    assert "secret" not in stderr
    assert KEY not in stderr
    assert not (tmp_path / "cua-home").exists()

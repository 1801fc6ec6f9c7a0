"""The monitor's token: what is refused without it, and that it is shown nowhere."""

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from consumers.errors import UsageError
from consumers.monitor.access import Access, read_access
from consumers.monitor.answer import Answer
from consumers.monitor.feed import ChangeFeed
from consumers.monitor.server import MonitorServer
from tests.support.forked_command import run_command

TOKEN = "d1ce+5f/secret=="  # noqa: S105  # of this test
QUOTED = "d1ce%2B5f%2Fsecret%3D%3D"
PATHS = (
    "/",
    "/style.css",
    "/api/trainings",
    "/events",
    "/nothing",
    "/metrics",
    "/blob/" + "0" * 64,
)


class Echo:
    """Answers with the path; fails where it is told to."""

    def __init__(self) -> None:
        self.asked, self.go_on = threading.Event(), threading.Event()

    def answer(self, path: str) -> Answer:
        if path == "/broken":
            raise ValueError(path)
        if path == "/slow":
            self.asked.set()
            assert self.go_on.wait(60)
            # More than the connection takes from a server whose client does not read.
            return Answer(200, "text/plain", bytes(10_000_000))
        return Answer(200, "text/plain", path.encode())


@pytest.fixture
def server() -> Iterator[MonitorServer]:
    feed = ChangeFeed(dict)
    with MonitorServer(0, Echo(), feed=feed, access=Access(TOKEN)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def ask(
    server: MonitorServer, path: str, method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], str]:
    with closing(http.client.HTTPConnection("127.0.0.1", server.server_port)) as connection:
        connection.request(method, path, headers=headers)
        with connection.getresponse() as response:
            begin = response.readline() if path == "/events" else response.read()
            return response.status, dict(response.getheaders()), begin.decode()


@pytest.mark.parametrize("path", PATHS)
def test_every_path_needs_the_token(server: MonitorServer, path: str) -> None:
    for headers in (
        {},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer \xe9"},
        {"Cookie": f"cua_monitor_{server.server_port}={TOKEN}"},
        {"Cookie": f"cua_monitor_{server.server_port}="},
        {"Cookie": "\xe9; =;;"},
    ):
        code, answered, text = ask(server, path, **headers)
        assert (code, answered["WWW-Authenticate"]) == (401, "Bearer"), headers
        assert TOKEN not in text
    assert ask(server, path, Authorization=f"Bearer {TOKEN}")[0] == 200
    assert ask(server, path, Authorization=f"bearer {TOKEN}")[0] == 200


def test_without_the_token_no_method_is_named(server: MonitorServer) -> None:
    assert ask(server, "/", "POST")[0] == 401
    assert ask(server, "/", "POST", Authorization=f"Bearer {TOKEN}")[0] == 405


def test_a_client_that_hangs_up_before_the_answer_leaves_no_traceback(
    server: MonitorServer, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    request = f"GET /slow HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.server_port)) as client:
        client.sendall(request.encode())
        assert isinstance(server.pages, Echo)
        assert server.pages.asked.wait(30)
    others = {thread for thread in threading.enumerate() if "process_request" in thread.name}
    server.pages.go_on.set()
    for thread in others:
        thread.join(30)
    assert others
    assert not any(thread.is_alive() for thread in others)
    assert (caplog.text, capfd.readouterr().err) == ("", "")


def test_a_browser_gives_it_once_for_a_cookie_that_is_not_the_token(server: MonitorServer) -> None:
    code, headers, text = ask(server, f"/step/1?token={QUOTED}")
    assert (code, headers["Location"], text) == (303, "/step/1", "")
    name, *flags = headers["Set-Cookie"].split("; ")
    assert sorted(flags) == ["HttpOnly", "Path=/", "SameSite=Strict"]
    assert "secret" not in name
    assert ask(server, "/step/1", Cookie=f"other=1; {name}")[2] == "/step/1"
    assert ask(server, f"/?token={TOKEN}")[0] == 303, "a browser leaves + and / as they are"


def test_a_wrong_token_in_the_address_is_refused(server: MonitorServer) -> None:
    cookie = ask(server, f"/?token={QUOTED}")[1]["Set-Cookie"].partition(";")[0]
    for query in ("token=", "token=x", f"token={QUOTED}x", f"token=x&token={QUOTED}"):
        code, headers, _ = ask(server, f"/?{query}", Cookie=cookie)
        assert (code, headers.get("Set-Cookie")) == (401, None), query


@pytest.mark.parametrize("path", ["//evil.example/", "////evil.example/", "/\\evil.example/"])
def test_the_redirect_leads_to_no_other_host(server: MonitorServer, path: str) -> None:
    location = ask(server, f"{path}?token={QUOTED}")[1]["Location"]
    assert location[0] == "/"
    assert location[1:2] not in {"/", "\\"}


def test_a_failure_is_logged_without_the_address_s_query(
    server: MonitorServer, caplog: pytest.LogCaptureFixture
) -> None:
    code, _, text = ask(server, "/broken?x=secret", Authorization=f"Bearer {TOKEN}")
    assert code == 500
    assert "cannot render /broken" in caplog.text
    assert "secret" not in caplog.text + text


def token_file(tmp_path: Path, content: str, mode: int = 0o600) -> Path:
    path = tmp_path / "token"
    path.write_text(content)
    path.chmod(mode)
    return path


def test_a_file_has_the_token_on_one_line(tmp_path: Path) -> None:
    access = read_access(token_file(tmp_path, f"  {TOKEN}\r\n"))
    assert access.is_token(TOKEN)
    assert not access.is_token(f"{TOKEN}\n")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660, 0o602])
def test_a_file_that_others_can_use_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(UsageError, match=rf"others can read .* \(its mode is {mode:o}\)"):
        read_access(token_file(tmp_path, TOKEN, mode))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is empty"),
        (" \n\n", "is empty"),
        ("two words", "one line of printable ASCII"),
        ("one\ntwo\n", "one line of printable ASCII"),
        ("schlüssel", "one line of printable ASCII"),
        ("a" * 5000, "one line of printable ASCII"),
    ],
)
def test_a_file_without_a_token_is_refused(tmp_path: Path, content: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        read_access(token_file(tmp_path, content))


def test_no_file_is_not_found_and_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no token file"):
        read_access(tmp_path / "nothing")
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        read_access(tmp_path)


@pytest.mark.parametrize("command", ["monitor", "up"])
@pytest.mark.parametrize("content", ["", None])
def test_a_mistake_ends_the_command_before_it_starts_anything(
    tmp_path: Path, command: str, content: str | None
) -> None:
    path = tmp_path / "nothing" if content is None else token_file(tmp_path, content)
    done = run_command("consumers", command, "--port", "0", "--token-file", str(path))
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: there is no token" if content is None else "error: the")

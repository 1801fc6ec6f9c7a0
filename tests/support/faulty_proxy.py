"""A proxy in front of a server that answers some completions with a fault, as a test scripts."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal, NamedTuple

import httpx

Fault = int | Literal["drop", "cut", "slow"]
"""A status; no answer; half of one; or one after `SLOW_S`."""
SLOW_S = 1.0


class _Answer(NamedTuple):
    status: int
    body: bytes
    headers: dict[str, str] = {}
    num_sent: int | None = None
    """Bytes of the body that are sent before the connection ends; None for all."""


class FaultyProxy:
    """Passes everything on except completions that get the next fault. Thread-safe."""

    def __init__(self, target: str) -> None:
        """`target`: the server, `http://host:port/v1`."""
        self.url = ""
        self.faults: list[Fault] = []
        """For the next requests for completions, one each."""
        self.num_answered = 0
        """Completions that were passed on whole."""
        self._target = target
        self._lock = threading.Lock()
        self._client = httpx.Client(timeout=120.0)

    def close(self) -> None:
        self._client.close()

    def answer(self, method: str, path: str, body: bytes) -> _Answer | None:
        """None: the connection ends without an answer."""
        is_completion = path.endswith("/completions")
        with self._lock:
            fault = self.faults.pop(0) if is_completion and self.faults else None
        if fault == "drop":
            return None
        if isinstance(fault, int):
            # Without the header the client waits half a second and more before it asks again.
            return _Answer(fault, b"a fault", {"retry-after-ms": "1"})
        if fault == "slow":
            threading.Event().wait(SLOW_S)
        url = self._target.removesuffix("/v1") + path
        headers = {"content-type": "application/json"}
        got = self._client.request(method, url, content=body, headers=headers)
        if fault == "cut":
            return _Answer(got.status_code, got.content, num_sent=len(got.content) // 2)
        with self._lock:
            self.num_answered += is_completion
        return _Answer(got.status_code, got.content)


@contextmanager
def faulty_proxy(target: str) -> Iterator[FaultyProxy]:
    """A proxy of the server at `target` that ends with the block."""
    proxy = FaultyProxy(target)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._pass_on("GET", b"")

        def do_POST(self) -> None:
            self._pass_on("POST", self.rfile.read(int(self.headers["content-length"])))

        def _pass_on(self, method: str, body: bytes) -> None:
            answer = proxy.answer(method, self.path, body)
            if answer is None:
                return
            self.send_response(answer.status)
            for name, value in {**answer.headers, "content-length": str(len(answer.body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body[: answer.num_sent])

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base's
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    proxy.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        proxy.close()

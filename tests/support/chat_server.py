"""An OpenAI-compatible endpoint on this machine that answers what a test scripts."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class ChatServer:
    """The requests so far, and the answers to the next ones."""

    url: str = ""
    answers: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)
    """(status, headers, body) for each of the next requests; the last one is repeated."""
    models: list[str] | None = None
    """Names that it lists; None answers 404."""
    roots: dict[str, str] = field(default_factory=dict)
    """Name -> where it says that it was loaded from."""
    models_status: int | None = None
    """With `models_headers`, its answer to a request for the list instead."""
    models_headers: dict[str, str] = field(default_factory=dict)
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def keys(self) -> list[str | None]:
        """The `Authorization` of every request."""
        return [headers.get("authorization") for headers in self.headers]

    def reply(self, text: str) -> None:
        """Answer with a completion of this text."""
        body = {"model": "judge-1", "choices": [{"message": {"content": text}}]}
        self.answers.append((200, {}, json.dumps(body).encode()))

    def reply_error(self, status: int, body: str = "", **headers: str) -> None:
        """Answer with this status."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers.append((status, named, body.encode()))


@contextmanager
def chat_server() -> Iterator[ChatServer]:
    """A server that ends with the block."""
    script = ChatServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._note_headers()
            if script.models_status is not None:
                self._answer(script.models_status, script.models_headers, b"")
            elif script.models is None:
                self._answer(404, {}, b"")
            else:
                rows = [
                    {"id": name} | ({"root": script.roots[name]} if name in script.roots else {})
                    for name in script.models
                ]
                self._answer(200, {}, json.dumps({"data": rows}).encode())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            script.requests.append(json.loads(body))
            self._note_headers()
            answers = script.answers
            self._answer(*(answers.pop(0) if len(answers) > 1 else answers[0]))

        def _note_headers(self) -> None:
            script.headers.append({name.lower(): value for name, value in self.headers.items()})

        def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base's
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    script.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

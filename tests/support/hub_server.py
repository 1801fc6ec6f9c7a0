"""A stand-in for the Hugging Face hub on this machine: the repositories of a folder."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

COMMIT = "c" * 40


@dataclass
class HubServer:
    """Its address, and what it sent."""

    url: str = ""
    sent: dict[str, int] = field(default_factory=dict)
    """File -> bytes of it."""
    has_ranges: bool = True
    """Whether it answers requests for a part of a weights file; False: with 500."""


@contextmanager
def hub_server(root: Path) -> Iterator[HubServer]:
    """Serve `root/ORGANISATION/NAME` as a repository each, until the block ends."""
    server = _Server(root)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.root = root
        self.hub = HubServer(f"http://127.0.0.1:{self.server_port}")


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        parts = urlsplit(self.path).path.strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            self._describe(self.server.root / parts[2] / parts[3], is_tree="tree" in parts)
        elif parts[2:3] == ["resolve"]:
            self._send_file(self.server.root / parts[0] / parts[1] / "/".join(parts[4:]))
        else:
            self._answer(404, b"")

    def _describe(self, folder: Path, *, is_tree: bool) -> None:
        if not folder.is_dir():
            self._answer(404, b"", {"x-error-code": "RepoNotFound"})
            return
        files = sorted(path for path in folder.iterdir() if path.is_file())
        if is_tree:
            rows = [
                {
                    "type": "file",
                    "path": path.name,
                    "size": path.stat().st_size,
                    "oid": _etag(path),
                }
                for path in files
            ]
            self._answer(200, json.dumps(rows).encode())
            return
        name = f"{folder.parent.name}/{folder.name}"
        content = {
            "id": name,
            "modelId": name,
            "sha": COMMIT,
            "private": False,
            "gated": False,
            "siblings": [{"rfilename": path.name} for path in files],
        }
        self._answer(200, json.dumps(content).encode())

    def _send_file(self, path: Path) -> None:
        if not path.is_file():
            self._answer(404, b"", {"x-error-code": "EntryNotFound"})
            return
        content, wanted = path.read_bytes(), self.headers["range"]
        headers = {"etag": f'"{_etag(path)}"', "x-repo-commit": COMMIT}
        if wanted is None:
            self._answer(200, content, headers, path.name)
        elif not self.server.hub.has_ranges and path.suffix == ".safetensors":
            self._answer(500, b"")
        else:
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            part = content[int(first) : int(last) + 1 if last else None]
            end = int(first) + len(part) - 1
            headers["content-range"] = f"bytes {first}-{end}/{len(content)}"
            self._answer(206, part, headers, path.name)

    def _answer(
        self, status: int, body: bytes, headers: dict[str, str] | None = None, file: str = ""
    ) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)
            if file:
                self.server.hub.sent[file] = self.server.hub.sent.get(file, 0) + len(body)

    def log_message(self, *_: object) -> None:
        pass


def _etag(path: Path) -> str:
    return hashlib.sha1(path.read_bytes()).hexdigest()  # noqa: S324  # as git names a file

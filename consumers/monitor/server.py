"""The monitor's HTTP server: on loopback, GET only, for requests addressed to a loopback name.

The standard library's server is enough for one user and pages of milliseconds. A web framework
would save one page of code (routing, templates) and add attack surface.
"""

import logging
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol
from urllib.parse import urlsplit

from consumers.monitor.pages import Answer

logger = logging.getLogger(__name__)

ADDRESS = "127.0.0.1"
DEFAULT_PORT = 8321
REQUEST_TIMEOUT_S = 30
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost"})
HEADERS: Mapping[str, str] = {
    # No script, frame, form or foreign resource: a policy's output is harmless even unescaped.
    "Content-Security-Policy": (
        "default-src 'none'; img-src 'self'; style-src 'self'; base-uri 'none'; form-action 'none';"
        " frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Pages(Protocol):
    """What a server serves. Called from several threads."""

    def answer(self, path: str) -> Answer:
        """The answer to a path without its query."""
        ...


class MonitorServer(ThreadingHTTPServer):
    """Serves `pages`; `serve_forever` and `shutdown` are the standard library's."""

    daemon_threads = True
    # SO_REUSEPORT would let two monitors share a port; SO_REUSEADDR alone only skips TIME_WAIT.
    allow_reuse_port = False

    def __init__(self, port: int, pages: Pages, address: str = ADDRESS) -> None:
        """`port` 0: a free one. OSError when the port is taken or the address is not ours."""
        self.pages = pages
        self.is_loopback = address in LOOPBACK_NAMES
        self._host = address
        super().__init__((address, port), _Handler)

    @property
    def url(self) -> str:
        """The address to open in a browser."""
        return f"http://{self._host}:{self.server_port}/"


class _Handler(BaseHTTPRequestHandler):
    server: MonitorServer
    protocol_version = "HTTP/1.1"
    timeout = REQUEST_TIMEOUT_S

    def do_GET(self) -> None:
        self._respond(with_content=True)

    def do_HEAD(self) -> None:
        self._respond(with_content=False)

    def _respond(self, *, with_content: bool) -> None:
        answer = self._answer()
        self.send_response(answer.code)
        for name, value in {
            **HEADERS,
            "Cache-Control": answer.cache,
            "Content-Type": answer.content_type,
        }.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        if with_content:
            self.wfile.write(answer.content)

    def _answer(self) -> Answer:
        # DNS rebinding: another origin can make its own name resolve to loopback. The Host header
        # then has that name.
        name = urlsplit(f"//{self.headers.get('Host', '')}").hostname
        if self.server.is_loopback and name not in LOOPBACK_NAMES:
            return Answer(
                421,
                "text/plain; charset=utf-8",
                b"This server answers only requests made to localhost or 127.0.0.1.\n",
            )
        try:
            return self.server.pages.answer(urlsplit(self.path).path)
        except Exception:  # the boundary of one request: logged, and the server goes on
            logger.exception("cannot render %s", self.path)
            return Answer(
                500,
                "text/plain; charset=utf-8",
                b"Internal error; the terminal that runs the monitor shows the traceback.\n",
            )

    def version_string(self) -> str:
        return "cua-project"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the standard library's signature
        """No access log."""

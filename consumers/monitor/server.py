"""The monitor's HTTP server: loopback only, GET only, for requests that were made to a loopback name.

The standard library's server is enough: one user, pages of milliseconds, nothing to keep up to date. What a web framework would add
(routing, templates) is a page of code here; what it would add in attack surface is not wanted.
"""

import sys
import traceback
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from consumers.monitor.pages import Answer, Pages

ADDRESS = "127.0.0.1"
DEFAULT_PORT = 8321
REQUEST_TIMEOUT_S = 30
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost"})
HEADERS: Mapping[str, str] = {
    # No script, no frame, no form, nothing from elsewhere: what a policy wrote can do nothing even
    # if it were not escaped.
    "Content-Security-Policy": (
        "default-src 'none'; img-src 'self'; style-src 'self'; base-uri 'none'; form-action 'none';"
        " frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class MonitorServer(ThreadingHTTPServer):
    """Serves `pages` on loopback.

    `serve_forever` and `shutdown` as the standard library has them.
    """

    daemon_threads = True
    # Two monitors must not share a port, which SO_REUSEPORT would allow; SO_REUSEADDR alone only
    # skips TIME_WAIT.
    allow_reuse_port = False

    def __init__(self, port: int, pages: Pages) -> None:
        """`port` 0: a free one. OSError: it is taken."""
        self.pages = pages
        super().__init__((ADDRESS, port), _Handler)

    @property
    def url(self) -> str:
        """Where to look."""
        return f"http://{ADDRESS}:{self.server_port}/"


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
        # A page of another origin may make its own name resolve to loopback (DNS rebinding); the
        # Host header then names that origin.
        if urlsplit(f"//{self.headers.get('Host', '')}").hostname not in LOOPBACK_NAMES:
            return Answer(
                421,
                "text/plain; charset=utf-8",
                b"This server answers only requests made to localhost or 127.0.0.1.\n",
            )
        try:
            return self.server.pages.answer(urlsplit(self.path).path)
        except Exception:  # noqa: BLE001  # the boundary of one request: recorded, and the server goes on
            traceback.print_exc(file=sys.stderr)
            return Answer(
                500,
                "text/plain; charset=utf-8",
                b"The monitor failed on this page; its output says why.\n",
            )

    def version_string(self) -> str:
        return "cua-project"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the standard library's signature
        """Say nothing: stderr is for what matters."""

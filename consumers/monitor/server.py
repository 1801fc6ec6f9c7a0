"""The monitor's HTTP server: on loopback, GET only, for requests addressed to a loopback name.

The standard library's server is enough for one user and pages of milliseconds. A web framework
would save one page of code (routing, templates) and add attack surface.
"""

import logging
import sys
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from consumers.monitor.access import Access
from consumers.monitor.answer import NO_STORE, Answer, failure, is_api
from consumers.monitor.feed import ChangeFeed, TooManyClientsError
from consumers.monitor.table_reader import UnreadableError

logger = logging.getLogger(__name__)

ADDRESS = "127.0.0.1"
DEFAULT_PORT = 8321
REQUEST_TIMEOUT_S = 30
EVENTS = "/events"
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

    def __init__(
        self,
        port: int,
        pages: Pages,
        address: str = ADDRESS,
        feed: ChangeFeed | None = None,
        access: Access | None = None,
    ) -> None:
        """`port` 0: a free one. OSError when the port is taken or the address is not ours.

        `feed`: what `/events` sends; it is closed with the server. `access`: who may
        ask; None: everybody who reaches the address.
        """
        self.pages = pages
        self.feed = feed
        self.access = access
        self.is_loopback = address in LOOPBACK_NAMES
        self._host = address
        super().__init__((address, port), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002  # the standard library's signature
        """Log what a request raised; a client that goes away before its answer is no error."""
        error = sys.exception()
        if not isinstance(error, OSError):
            logger.error("a request failed", exc_info=error)

    def server_close(self) -> None:
        """Stop listening, and end the streams."""
        if self.feed is not None:
            self.feed.close()
        super().server_close()

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

    def _refuse_method(self) -> None:
        self.close_connection = True  # its content is not read
        headers = {"Allow": "GET, HEAD"}
        message = f"{self.command} is not answered: the monitor changes nothing; use GET"
        self._send(self._refusal() or failure(405, message, headers), with_content=True)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _refuse_method

    def _respond(self, *, with_content: bool) -> None:
        answer = self._refusal() or self._unknown_parameter()
        if answer is None and urlsplit(self.path).path == EVENTS and self.server.feed is not None:
            answer = self._follow(self.server.feed, with_content=with_content)
            if answer is None:
                return
        self._send(answer or self._answer(), with_content=with_content)

    def _send(self, answer: Answer, *, with_content: bool) -> None:
        self._begin(
            answer.code,
            {
                "Cache-Control": answer.cache,
                "Content-Type": answer.content_type,
                **answer.headers,
                "Content-Length": str(len(answer.content)),
            },
        )
        if with_content:
            self.wfile.write(answer.content)

    def _begin(self, code: int, headers: Mapping[str, str]) -> None:
        self.send_response(code)
        for name, value in {**HEADERS, **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def _follow(self, feed: ChangeFeed, *, with_content: bool) -> Answer | None:
        """Stream changes until the client or the server goes; an Answer where that cannot begin."""
        self.close_connection = True  # where the stream ends is where the connection does
        try:
            with feed.opened(self.headers.get("Last-Event-ID")) as events:
                headers = {"Cache-Control": NO_STORE, "Content-Type": "text/event-stream"}
                self._begin(200, {**headers, "Connection": "close"})
                for event in events if with_content else ():
                    self.wfile.write(event)
        except TooManyClientsError:
            message = "too many clients follow this monitor; try again later"
            return failure(503, message, {"Retry-After": "10"})
        except UnreadableError as error:
            return failure(503, f"{error.title}: {error}")
        except OSError:  # the client went away, or did not read for REQUEST_TIMEOUT_S
            pass
        return None

    def _refusal(self) -> Answer | None:
        # DNS rebinding: another origin can make its own name resolve to loopback. The Host header
        # then has that name.
        name = urlsplit(f"//{self.headers.get('Host', '')}").hostname
        if self.server.is_loopback and name not in LOOPBACK_NAMES:
            return failure(421, "the monitor answers only requests to localhost or 127.0.0.1")
        return None if self.server.access is None else self._without_token(self.server.access)

    def _unknown_parameter(self) -> Answer | None:
        """Programs' paths take no parameters; who gives one expects another answer."""
        url = urlsplit(self.path)
        if url.path != EVENTS and not is_api(url.path):
            return None
        given = next(iter(parse_qsl(url.query, keep_blank_values=True)), None)
        if given is None:
            return None
        message = f"unknown query parameter {given[0]!r}: {url.path} takes none; leave it out"
        return failure(400, message)

    def _without_token(self, access: Access) -> Answer | None:
        """The answer to a request without the token, or with it in the address; None: go on."""
        url, port = urlsplit(self.path), self.server.server_port
        given = next((item[6:] for item in url.query.split("&") if item[:6] == "token="), None)
        if given is not None and access.is_token(unquote(given)):
            # One leading slash, and no backslash: a browser takes two for another host.
            location = "/" + quote(url.path.lstrip("/"), safe="/%")
            headers = {"Location": location, "Set-Cookie": access.cookie(port)}
            return Answer(303, "text/plain; charset=utf-8", b"", headers=headers)
        authorization, cookies = self.headers.get("Authorization"), self.headers.get("Cookie")
        if given is None and access.admits(authorization, cookies, port):
            return None
        return failure(
            401,
            "this monitor needs its token: in a header `Authorization: Bearer TOKEN`, or once in a"
            " browser as /?token=TOKEN",
            {"WWW-Authenticate": "Bearer"},
        )

    def _answer(self) -> Answer:
        path = urlsplit(self.path).path
        try:
            return self.server.pages.answer(path)
        except Exception:  # the boundary of one request: logged, and the server goes on
            logger.exception("cannot render %s", path)
            message = "Internal error; the terminal that runs the monitor shows the traceback."
            if is_api(path):
                return failure(500, message)
            return Answer(500, "text/plain; charset=utf-8", f"{message}\n".encode())

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the standard library refuses: requests and methods that it does not know."""
        self.close_connection = True
        text = message or explain or HTTPStatus(code).phrase
        self._send(failure(code, text), with_content=self.command != "HEAD")

    def version_string(self) -> str:
        return "cua-project"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the standard library's signature
        """No access log."""

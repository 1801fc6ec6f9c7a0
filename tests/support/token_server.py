"""An OAuth 2.0 token endpoint for tests: client credentials in, an unsecured JWT out."""

import base64
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import parse_qs, unquote

CLIENT_ID, CLIENT_SECRET = "trainer", "s3cret:/+ä"


class TokenServer:
    """On a free port of loopback, as a context manager. Strict: anything wrong is a 401."""

    def __init__(self, life_s: float = 300) -> None:
        self.forms: list[dict[str, list[str]]] = []
        """Of each request that got a token."""
        self.life_s = life_s
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                scheme, _, text = self.headers.get("Authorization", "").partition(" ")
                client, _, secret = base64.b64decode(text).decode().partition(":")
                given = (scheme, unquote(client), unquote(secret), form.get("grant_type"))
                is_right = given == ("Basic", CLIENT_ID, CLIENT_SECRET, ["client_credentials"])
                self.send_response(200 if is_right else 401)
                self.end_headers()
                if is_right:
                    owner.forms.append(form)
                    self.wfile.write(json.dumps(owner.answer()).encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"http://127.0.0.1:{self._server.server_port}/token"

    def answer(self) -> dict[str, object]:
        """What a right request gets."""
        now = time.time()
        claims = {"sub": CLIENT_ID, "iat": now, "exp": now + 300, "jti": len(self.forms)}
        parts = [
            base64.urlsafe_b64encode(json.dumps(item).encode()).decode().rstrip("=")
            for item in ({"alg": "none"}, claims)
        ]
        return {"access_token": ".".join([*parts, ""]), "expires_in": self.life_s}

    def __enter__(self) -> "TokenServer":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

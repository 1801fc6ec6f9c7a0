"""Who may ask the monitor: whoever has the token of `--token-file`.

Programs send it in each request; a browser gives it once, for a cookie that is derived from it, so
the token is in no page, cookie, log line or printed address.
"""

import hmac
import os
import re
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from stat import S_IMODE

from consumers.errors import UsageError

LONGEST_BYTES = 4096
"""Of a token file; a token is some dozens."""
TOKEN = re.compile(r"[!-~]+")
OTHERS = 0o077
"""Permissions of group and others."""


class Access:
    """Compares in constant time. Immutable."""

    def __init__(self, token: str) -> None:
        """`token`: printable ASCII without spaces."""
        self._token = token.encode()
        self._cookie = hmac.new(self._token, b"cua-project monitor", "sha256").hexdigest()

    def is_token(self, text: str) -> bool:
        """Whether it is the token."""
        return hmac.compare_digest(text.encode(), self._token)

    def admits(self, authorization: str | None, cookies: str | None, port: int) -> bool:
        """Whether a request with these headers (`Authorization`, `Cookie`) has the token."""
        scheme, _, credentials = (authorization or "").partition(" ")
        if scheme.lower() == "bearer" and self.is_token(credentials.strip()):
            return True
        try:
            cookie = SimpleCookie(cookies).get(_name(port))
        except CookieError:
            return False
        return cookie is not None and hmac.compare_digest(
            cookie.value.encode(), self._cookie.encode()
        )

    def cookie(self, port: int) -> str:
        """The header `Set-Cookie`; browsers forget the cookie when they are closed."""
        return f"{_name(port)}={self._cookie}; HttpOnly; SameSite=Strict; Path=/"


def _name(port: int) -> str:
    # Browsers send a cookie to every port of a host.
    return f"cua_monitor_{port}"


def read_access(path: Path) -> Access:
    """The access by the token that the file has, on one line.

    UsageError when there is no such file, it cannot be read, others can read it, or it has no
    token.
    """
    try:
        with path.open("rb") as file:
            mode = S_IMODE(os.fstat(file.fileno()).st_mode)
            content = file.read(LONGEST_BYTES + 1)
    except FileNotFoundError:
        message = f"there is no token file {path}; create it, readable by you alone"
        raise UsageError(message) from None
    except OSError as error:
        message = f"the token file {path} cannot be read: {error.strerror}; name another one"
        raise UsageError(message) from None
    if mode & OTHERS:
        message = (
            f"others can read the token file {path} (its mode is {mode:o}); run"
            f" `chmod 600 {path}`, and change the token if they may have read it"
        )
        raise UsageError(message)
    if not content.strip():
        message = f"the token file {path} is empty; `openssl rand -hex 32` prints a token"
        raise UsageError(message)
    token = content.decode("latin-1").strip()
    if len(content) > LONGEST_BYTES or not TOKEN.fullmatch(token):
        message = (
            f"the token file {path} must have one line of printable ASCII characters without"
            " spaces; `openssl rand -hex 32` prints such a token"
        )
        raise UsageError(message)
    return Access(token)

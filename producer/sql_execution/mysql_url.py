"""The URL of a MySQL or MariaDB server."""

import re
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

DEFAULT_PORT: Final = 3306
DEFAULT_PREFIX: Final = "cua"
PREFIX: Final = re.compile(r"[a-z][a-z0-9]{0,15}")


class ServerUrl(NamedTuple):
    """`mysql://USER:PASSWORD@HOST:PORT/PREFIX`."""

    host: str
    port: int
    user: str
    password: str
    prefix: str = DEFAULT_PREFIX
    """Of the names of sessions' databases and users."""

    @property
    def redacted(self) -> str:
        """Without the password."""
        return f"mysql://{self.user}@{self.host}:{self.port}"


def parse_server_url(url: str) -> ServerUrl:
    """ValueError for another form."""
    try:
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORT
    except ValueError as error:
        message = f"it is no URL: {error}"
        raise ValueError(message) from error
    if parts.scheme not in {"mysql", "mariadb"} or not parts.hostname or not parts.username:
        message = "a server's URL is mysql://USER@HOST:PORT"
        raise ValueError(message)
    prefix = parts.path.strip("/") or DEFAULT_PREFIX
    if not PREFIX.fullmatch(prefix) or parts.query or parts.fragment:
        message = (
            f"{prefix!r} cannot begin the names of the sessions' databases; use at most 16 small"
            " letters and digits"
        )
        raise ValueError(message)
    user, password = unquote(parts.username), unquote(parts.password or "")
    return ServerUrl(parts.hostname, port, user, password, prefix)

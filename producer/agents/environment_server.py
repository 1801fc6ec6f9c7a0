"""Settings of agents that work on environment servers."""

import re
from importlib.util import find_spec
from typing import Final, Literal
from urllib.parse import urlsplit

from producer.errors import UsageError
from schemas.distribution import install_command

ActionsName = Literal["computer", "browsergym", "text", "action_str", "answer", "code"]
"""How actions are encoded for the server."""
TOKEN: Final = "CUA_OPENENV_TOKEN"  # noqa: S105  # the variable's name
"""Environment variable with the token that is sent to servers as `Authorization: Bearer`."""
TASK_ID: Final = "task_id"
"""Key in a task's configuration for the server's own name of the task."""
EXAMPLE: Final = "ws://127.0.0.1:8000"
SIZE: Final = re.compile(r"([1-9]\d{0,4})x([1-9]\d{0,4})")


def require_package() -> None:
    """Check that openenv, the protocol's client and server, is installed. Raises UsageError."""
    if find_spec("openenv") is None:
        message = "environment servers need the package openenv"
        raise UsageError(message, ways=(f"run {install_command('openenv')}",))


def check_server_urls(urls: str) -> str:
    """Normalise comma-separated URLs.

    Raises ValueError for an invalid URL or one with a secret in it.
    """
    return ",".join(_checked(url.strip()) for url in urls.split(","))


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in {"ws", "wss", "http", "https"} and bool(parts.hostname)
        is_url = is_url and parts.port != 0
    except ValueError:
        is_url = False
    if is_url and (parts.username is not None or parts.query or parts.fragment):
        message = (
            "the URL must not hold a user, a password, a query or a fragment, because it is"
            f" recorded; give a token in the environment variable {TOKEN}"
        )
        raise ValueError(message)
    if not is_url or any(character.isspace() for character in url):
        message = f"this is no URL of an environment server; use one such as {EXAMPLE}"
        raise ValueError(message)
    scheme = parts.scheme.replace("http", "ws")
    return f"{scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix('/ws')}"


def check_size(size: str) -> str:
    """Check that `size` is WIDTHxHEIGHT in pixels. Raises ValueError."""
    if SIZE.fullmatch(size) is None:
        message = f"{size!r} is no size; write WIDTHxHEIGHT in pixels, such as 1280x720"
        raise ValueError(message)
    return size


def size_px(size: str | None) -> tuple[int, int] | None:
    """Width and height in px of a size that `check_size` accepted; None if `size` is None."""
    if size is None:
        return None
    width, _, height = size.partition("x")
    return int(width), int(height)

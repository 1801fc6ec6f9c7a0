"""The URL of an OpenAI-compatible endpoint, as configurations record it."""

from typing import Final
from urllib.parse import urlsplit

KEY_VARIABLE: Final = "OPENAI_API_KEY"
"""Holds the key of a served policy; a judge has its own."""


def check_url(
    url: str, key_variable: str, *, noun: str = "URL", others: str = "", owner: str = "the"
) -> str:
    """An endpoint's URL in its normal form. ValueError if it is not a URL or contains a secret.

    `key_variable`: where the key belongs; `noun`, `others` and `owner` fill in the messages.
    """
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url or any(character.isspace() for character in url):
        message = (
            f"{url!r} is no {noun}; use {others}the URL of an OpenAI-compatible endpoint"
            " such as http://localhost:8000/v1"
        )
        raise ValueError(message)
    if parts.username is not None or parts.query or parts.fragment:
        message = (
            f"{owner} URL must not hold a user, a password, a query or a fragment, because it is"
            f" recorded; give the key in the environment variable {key_variable}"
        )
        raise ValueError(message)
    path = parts.path.rstrip("/").removesuffix("/chat/completions")
    return f"{parts.scheme}://{parts.netloc}{path or '/v1'}"

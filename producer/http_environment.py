"""Checks the shell's proxies and certificates before an HTTP client is made."""

import os
from typing import Final

from producer.errors import UsageError
from schemas.http_environment import bypass_for_loopback, drop_unreadable_hosts, http_problem

HUB_URL: Final = "https://huggingface.co"
"""Of Hugging Face's client, unless HF_ENDPOINT is set."""


def check_http_environment(url: str, *, needs_proxies: bool = True, is_httpx: bool = False) -> None:
    """UsageError, naming the variable, if no request to this URL can be sent.

    Also has this process's clients reach loopback without a proxy. `needs_proxies`: whether the
    client is made for every proxy that is named, as those of SDKs are. `is_httpx`: it is of httpx,
    which fails at entries of `no_proxy` that others pass over; this process then drops them.
    """
    bypass_for_loopback(os.environ, url)
    if is_httpx:
        drop_unreadable_hosts(os.environ)
    if problem := http_problem(url, os.environ, needs_proxies=needs_proxies):
        raise UsageError(problem)

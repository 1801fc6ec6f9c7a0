"""An HTTP response as the monitor's parts make it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

API = "/api/"
JSON = "application/json"
NO_STORE, FOR_EVER = "no-store", "private, max-age=31536000, immutable"


def is_api(path: str) -> bool:
    """Whether a path is answered with JSON, failures included."""
    return f"{path}/".startswith(API)


@dataclass(frozen=True, slots=True)
class Answer:
    """A response with its whole content."""

    code: int
    content_type: str
    content: bytes
    cache: str = NO_STORE
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further ones."""


def failure(code: int, message: str, headers: Mapping[str, str] | None = None) -> Answer:
    """`{"error": message}`, for programs."""
    return Answer(code, JSON, json.dumps({"error": message}).encode(), headers=headers or {})

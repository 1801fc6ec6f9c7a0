"""One line of the doctor's report."""

from typing import Literal, NamedTuple

Level = Literal["ok", "warning", "failed"]


class Finding(NamedTuple):
    """What was looked at, how it is, and what to do."""

    check: str
    level: Level
    message: str
    advice: str | None = None
    """None: nothing to do."""


def ok(check: str, message: str) -> Finding:
    """All is well."""
    return Finding(check, "ok", message)


def warning(check: str, message: str, advice: str) -> Finding:
    """It works, and will not for ever."""
    return Finding(check, "warning", message, advice)


def failed(check: str, message: str, advice: str) -> Finding:
    """It does not work."""
    return Finding(check, "failed", message, advice)

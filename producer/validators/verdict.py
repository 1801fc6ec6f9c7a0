"""The evidence of an episode that validators judge, and their verdicts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from pydantic import JsonValue

from schemas.base import Payload
from schemas.turn import TakenAction

EndFacts = Callable[[UUID, datetime], tuple[Payload, ...]]
"""Maps (row id of the task's entry, time of judging) to events for the rollout's stream."""


EQUALS = "equals"
"""Compares answers as text, ignoring case and surrounding whitespace."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What remains of an episode for judging it."""

    screens: tuple[bytes, ...]
    """The last screenshots as PNG, oldest first; the last one shows the device at the end. Empty
    for an environment without a screen."""
    actions: tuple[TakenAction, ...]
    """The actions of all turns, in order."""
    num_turns: int = 0
    """Number of turns taken."""


NO_EVIDENCE = Evidence(screens=(), actions=())
"""For judges that look only at the device."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of judging an episode."""

    success: bool
    """Whether the task is solved."""
    query: str
    """The device query."""
    expected: str | None
    """The answer that solves the task; None if there is no fixed answer to compare with."""
    actual: str | None
    """The device's answer; empty if its output could not be read, None if there was none."""
    details: dict[str, JsonValue] = field(default_factory=dict)
    """Includes `commands`, the shell commands that were run."""
    facts: EndFacts | None = None
    """How the episode ended in the environment's own terms; None if it has none."""

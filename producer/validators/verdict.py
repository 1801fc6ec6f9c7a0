"""What an episode leaves to judge, and what a validator found."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from pydantic import JsonValue

from schemas.base import Payload
from schemas.turn import TakenAction

EndFacts = Callable[[UUID, datetime], tuple[Payload, ...]]
"""(row id of the task's entry, when it was judged) -> events of the rollout's stream."""


EQUALS = "equals"
"""How answers are compared: as text, ignoring case and surrounding whitespace."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What an episode leaves to judge."""

    screens: tuple[bytes, ...]
    """PNG of the last screenshots, oldest first; the last is what the device shows at the end.
    Empty of an environment without a screen."""
    actions: tuple[TakenAction, ...]
    """Of all turns, in order."""
    num_turns: int = 0
    """Turns taken."""


NO_EVIDENCE = Evidence(screens=(), actions=())
"""For a judge that looks at the device alone."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a validator found."""

    success: bool
    """Whether the task is solved."""
    query: str
    """The device query."""
    expected: str | None
    """The answer that solves the task; None: it is compared with no fixed answer."""
    actual: str | None
    """The device's answer; empty if its output could not be read; None: there was none."""
    details: dict[str, JsonValue] = field(default_factory=dict)
    """`commands`: the shell commands that were run."""
    facts: EndFacts | None = None
    """How the episode ended in the environment's own terms; None: in no others."""

"""Rollouts that have ended, each with its turns, from the rollouts' events."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from schemas.completion import CompletionExecuted, CompletionStepsScored
from schemas.event import Event
from schemas.rollout import RolloutCancelled, RolloutCreated, RolloutFailed, RolloutFinished
from schemas.session import SessionEnded
from schemas.turn import TurnTaken

End = RolloutFinished | RolloutFailed | RolloutCancelled


@dataclass(slots=True)
class EndedRollout:
    """One attempt of an agent at a task."""

    id: UUID
    training_id: UUID | None
    created_at: datetime
    created: RolloutCreated
    turns: list[TurnTaken] = field(default_factory=list)
    end: End | None = None
    """None only while it is being read."""
    ended_at: datetime | None = None
    session: SessionEnded | None = None
    """The result of an SQL agent's session, recorded before its end; None: it is no session."""
    completion: CompletionExecuted | None = None
    """The result of a text-to-SQL completion, recorded before the end; None: it is none."""
    scores: list[CompletionStepsScored] = field(default_factory=list)
    """What scorers made of the completion's steps before the end."""


class RolloutCollector:
    """Puts rollouts together. Holds those that are under way in memory."""

    def __init__(self, forget: Callable[[str], None]) -> None:
        """`forget`: called with the stream of every rollout that has ended."""
        self._forget = forget
        self._open: dict[str, EndedRollout] = {}

    @property
    def num_unfinished(self) -> int:
        """Rollouts that have begun and not ended."""
        return len(self._open)

    def collect(self, events: Iterable[Event]) -> Iterator[EndedRollout]:
        """Every rollout that ends within the events, in the order of their ends."""
        for envelope, payload in events:
            subject = envelope.subject
            if isinstance(payload, RolloutCreated):
                owner = UUID(subject.partition("/")[2])
                self._open[subject] = EndedRollout(
                    owner, envelope.training_id, envelope.time, payload
                )
                continue
            rollout = self._open.get(subject)
            if rollout is None:
                continue
            match payload:
                case TurnTaken():
                    rollout.turns.append(payload)
                case SessionEnded():
                    rollout.session = payload
                case CompletionExecuted():
                    rollout.completion = payload
                case CompletionStepsScored():
                    rollout.scores.append(payload)
                case RolloutFinished() | RolloutFailed() | RolloutCancelled():
                    del self._open[subject]
                    rollout.end, rollout.ended_at = payload, envelope.time
                    self._forget(subject)
                    yield rollout
                case _:
                    pass

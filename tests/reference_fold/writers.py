"""The writers of a generated training: one clock, one seed, streams with sequence numbers."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import NamedTuple
from uuid import UUID

from schemas import ids
from schemas.base import Payload, Progress
from schemas.catalogue import stream
from schemas.event import StreamPoint
from schemas.wire import encode
from tests.reference_fold.drawn_values import drawn

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


class LoggedEvent(NamedTuple):
    """One event as a writer appends it to the log."""

    subject: str
    value: bytes


@dataclass
class StreamWriter:
    """One stream's sequence numbers."""

    history: "Writers"
    subject: str
    epoch: int = 1
    sequence: int = 0
    continues: StreamPoint | None = None

    def emit(self, payload: Payload) -> None:
        """Append the stream's next event."""
        self.sequence += 1
        history = self.history
        if history.shape.tells_everything:
            payload = drawn(payload, history.values)
        value = encode(
            payload,
            id=ids.uuid7(history.now),
            source=f"//host/{self.epoch}",
            time=history.tick(),
            subject=self.subject,
            epoch=self.epoch,
            sequence=self.sequence,
            training_id=history.training,
            continues=self.continues,
        )
        self.continues = None
        history.events.append(LoggedEvent(self.subject, value))

    def take_over(self) -> None:
        """Open the next epoch."""
        self.continues = StreamPoint(self.epoch, self.sequence)
        self.epoch, self.sequence = self.epoch + 1, 0


@dataclass
class Shape:
    """How large a history is, and how long its texts."""

    steps: int = 2
    groups: int = 2
    group_size: int = 2
    turns: int = 3
    response_chars: int = 20
    prompt_tokens: int = 12
    completion_tokens: int = 4
    has_trouble: bool = True
    """Failed and cancelled rollouts, failed groups and steps, pauses, resumes, older generations.
    """
    tells_everything: bool = False
    """Every type of event is there, and every field that nothing depends on is drawn."""


@dataclass
class Writers:
    """One training's writers."""

    run_name: str
    random: Random
    shape: Shape = field(default_factory=Shape)
    events: list[LoggedEvent] = field(default_factory=list)
    now: datetime = BEGAN

    def __post_init__(self) -> None:
        """The training's own stream."""
        self.training = ids.training_id(self.run_name)
        self.trainer = self.writer("training", self.training)
        self.tasks: list[UUID] = []
        self.validators: list[UUID] = []
        self.generation = 0
        self.version = 0
        self.has_trouble = self.shape.has_trouble
        self.fates = Random(self.run_name)
        self.values = Random(f"{self.run_name} {self.random.getstate()[1][:3]}")

    def tick(self) -> datetime:
        """Advance the clock a little."""
        self.now += timedelta(microseconds=self.random.randrange(1, 400_000))
        return self.now

    def writer(self, kind: str, owner: UUID) -> StreamWriter:
        """The writer of a new stream."""
        return StreamWriter(self, stream(kind, owner))

    def happens(self, probability: float) -> bool:
        """Whether trouble strikes."""
        return self.has_trouble and self.random.random() < probability

    def ends_badly(self, probability: float) -> bool:
        """Whether an entity fails instead of finishing.

        Draws nothing from `random`, so that a seed that once found a defect gives the same history.
        """
        return self.has_trouble and self.fates.random() < probability

    def progress(self, percent: float) -> Progress:
        """As the trainer states it."""
        if self.random.random() < 0.2:
            return Progress(percent=percent)
        left = self.random.random() * 100
        return Progress(
            percent=percent,
            avg_turn_time_s=0.5,
            estimated_total_time_s=left + 10,
            estimated_remaining_time_s=left,
        )

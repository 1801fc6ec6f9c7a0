"""The envelope: CloudEvents 1.0 in structured JSON, with our extensions trainingid, epoch, sequence and continues."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pydantic import JsonValue

from schemas.base import Payload


class StreamPoint(NamedTuple):
    """A place in a stream; ordered as the stream is."""

    epoch: int
    """From 1; a new writer opens the next."""
    sequence: int
    """From 1 within the epoch, without gaps."""

    def __str__(self) -> str:
        """As the `continues` extension has it: `2/17`."""
        return f"{self.epoch}/{self.sequence}"


def parse_stream_point(text: str) -> StreamPoint:
    """`2/17` -> StreamPoint; ValueError otherwise."""
    epoch, _, sequence = text.partition("/")
    return StreamPoint(int(epoch), int(sequence))


@dataclass(frozen=True, slots=True)
class Envelope:
    """Everything of an event but its payload's meaning.

    Enough to keep a stream's order, whatever the payload is.
    """

    id: UUID
    """UUIDv7, unique for ever."""
    source: str
    """The writer: `//host/pid/start`; one per process start."""
    type: str
    version: int
    """Of the payload's schema."""
    time: datetime
    """UTC, the writer's injected clock."""
    subject: str
    epoch: int
    sequence: int
    training_id: UUID | None
    continues: StreamPoint | None
    """On the first event of an epoch above 1: the stream's last point that its writer has read."""
    data: dict[str, JsonValue]
    """The payload as JSON, not yet checked."""

    @property
    def point(self) -> StreamPoint:
        """Where in its stream this stands."""
        return StreamPoint(self.epoch, self.sequence)


class Event(NamedTuple):
    """An envelope and its payload, checked."""

    envelope: Envelope
    payload: Payload

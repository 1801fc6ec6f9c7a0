"""The envelope: CloudEvents 1.0 in structured JSON.

Our extensions are trainingid, epoch, sequence and continues.
"""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pydantic import JsonValue

from schemas.base import Payload

DECISION_TYPES = "cua.operator."
"""Begins the types of operators' decisions, which are no part of a stream's sequence."""


class StreamPoint(NamedTuple):
    """A point in a stream; sorts in stream order."""

    epoch: int
    """From 1; a new writer opens the next."""
    sequence: int
    """From 1 within the epoch, without gaps."""

    def __str__(self) -> str:
        """As in the `continues` extension: `2/17`."""
        return f"{self.epoch}/{self.sequence}"


def parse_stream_point(text: str) -> StreamPoint:
    """`2/17` -> StreamPoint; ValueError otherwise."""
    epoch, _, sequence = text.partition("/")
    return StreamPoint(int(epoch), int(sequence))


class Envelope(NamedTuple):
    """An event with its payload not yet parsed: enough to keep a stream's order."""

    id: str
    """A UUIDv7, in lower case with hyphens."""
    source: str
    """The writer: `//host/pid/start`; unique per emitter."""
    type: str
    version: int
    """Of the payload's schema."""
    time: datetime
    """UTC, the writer's injected clock."""
    subject: str
    epoch: int
    """0: of a decision, which has none."""
    sequence: int
    """0: of a decision."""
    training_id: UUID | None
    continues: StreamPoint | None
    """On the first event of an epoch above 1: the last point its writer has read."""
    data: dict[str, JsonValue]
    """The payload as JSON, not yet validated."""

    @property
    def is_decision(self) -> bool:
        """Whether it is an operator's decision about its stream (`schemas.decision`)."""
        return not self.epoch

    @property
    def point(self) -> StreamPoint:
        """Its point in the stream."""
        return StreamPoint(self.epoch, self.sequence)


class Event(NamedTuple):
    """An envelope and its validated payload."""

    envelope: Envelope
    payload: Payload

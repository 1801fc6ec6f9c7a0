"""Records that are not applied, kept whole: parked, waiting for a gap, refused or abandoned."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from consumers.fold.rows import Row
from consumers.log.reader import LogRecord
from schemas.event import Envelope

HeldAs = Literal["parked", "waiting", "refused", "abandoned"]
Kind = Literal[
    "unreadable",
    "unknown_schema",
    "invalid",
    "transition",
    "database",
    "behind",
    "gap",
    "fenced",
    "foreign",
    "dropped",
]


class Coordinates(NamedTuple):
    """A record's place in a log; the key of `held_record`."""

    log_id: str
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Held:
    """A record that is held, and why."""

    log_id: str
    record: LogRecord
    held_as: HeldAs
    kind: Kind
    reason: str
    stream: str
    envelope: Envelope | None
    """None: unreadable."""

    @property
    def coordinates(self) -> Coordinates:
        """Its key."""
        return Coordinates(
            self.log_id, self.record.topic, self.record.partition, self.record.offset
        )

    @property
    def since(self) -> datetime:
        """The event's time; for an unreadable record, when it was appended."""
        return self.record.appended_at if self.envelope is None else self.envelope.time

    def row(self) -> Row:
        """The row of `held_record`."""
        record, envelope = self.record, self.envelope
        return {
            "log_id": self.log_id,
            "topic": record.topic,
            "partition": record.partition,
            "log_offset": record.offset,
            "held_as": self.held_as,
            "kind": self.kind,
            "reason": self.reason,
            "stream": self.stream,
            "type": None if envelope is None else envelope.type,
            "epoch": None if envelope is None else envelope.epoch or None,
            "sequence": None if envelope is None else envelope.sequence or None,
            "key": record.key,
            "value": record.value,
            "event_time": None if envelope is None else envelope.time,
            "appended_at": record.appended_at,
        }


def record_of(row: Mapping[str, object]) -> LogRecord:
    """The log record in a row of `held_record`."""
    topic, partition, offset, key, value, appended_at = (
        row[name] for name in ("topic", "partition", "log_offset", "key", "value", "appended_at")
    )
    assert isinstance(topic, str) and isinstance(partition, int) and isinstance(offset, int)  # noqa: PT018, S101  # column types
    assert isinstance(appended_at, datetime) and (key is None or isinstance(key, str))  # noqa: PT018, S101  # column types
    assert isinstance(value, bytes | memoryview)  # noqa: S101  # column type
    return LogRecord(topic, partition, offset, key, bytes(value), appended_at)


def waiting_envelope(held: Held) -> Envelope:
    """The envelope of a waiting record."""
    assert held.envelope is not None  # noqa: S101  # only a readable record can wait
    return held.envelope

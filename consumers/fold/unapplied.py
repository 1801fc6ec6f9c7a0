"""Records that are not applied, kept whole: waiting, parked or refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from consumers.fold.rows import Row
from consumers.log.reader import LogRecord
from schemas.event import Envelope

UnappliedState = Literal["waiting", "parked", "refused"]
"""`waiting`: a record before it in its stream is missing; it is applied when that one comes.
`parked`: it cannot be applied, or is behind such a record; an operator has to look. `refused`: it
will not be applied."""
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
GIVEN_UP: tuple[Kind, ...] = ("dropped", "behind")
"""Kinds of refused records that an operator gave up with the rest of their stream: the first, and
those behind it. That decision can be undone."""


class Coordinates(NamedTuple):
    """A record's place in a log; the key of `unapplied_record`."""

    log_id: str
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Unapplied:
    """A record that is not applied, and why."""

    log_id: str
    record: LogRecord
    state: UnappliedState
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

    @property
    def can_be_retried(self) -> bool:
        """Whether an operator's decision may have it tried again."""
        return self.state == "parked" or (self.state == "refused" and self.kind in GIVEN_UP)

    def row(self) -> Row:
        """The row of `unapplied_record`."""
        record, envelope = self.record, self.envelope
        return {
            "log_id": self.log_id,
            "topic": record.topic,
            "partition": record.partition,
            "log_offset": record.offset,
            "state": self.state,
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
    """The log record in a row of `unapplied_record`."""
    topic, partition, offset, key, value, appended_at = (
        row[name] for name in ("topic", "partition", "log_offset", "key", "value", "appended_at")
    )
    assert isinstance(topic, str) and isinstance(partition, int) and isinstance(offset, int)  # noqa: PT018, S101  # column types
    assert isinstance(appended_at, datetime) and (key is None or isinstance(key, str))  # noqa: PT018, S101  # column types
    assert isinstance(value, bytes | memoryview)  # noqa: S101  # column type
    return LogRecord(topic, partition, offset, key, bytes(value), appended_at)


def waiting_envelope(unapplied: Unapplied) -> Envelope:
    """The envelope of a waiting record."""
    assert unapplied.envelope is not None  # noqa: S101  # only a readable record can wait
    return unapplied.envelope

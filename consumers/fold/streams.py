"""What the projection knows of a stream.

How far it is applied, what its entities are, and what of it is held.

In memory while it changes, a row of `stream_position` when it rests.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import cast
from uuid import UUID

from consumers.fold.held import Held
from consumers.fold.projectors.projector import Row
from schemas.catalogue import stream_kind
from schemas.event import Envelope
from schemas.streams import StreamPosition


@dataclass(slots=True)
class Stream:
    """One stream's state. Not thread-safe; changed by the fold alone."""

    subject: str
    owner: str
    """The uuid in the subject."""
    position: StreamPosition = field(default_factory=StreamPosition)
    statuses: dict[str, str] = field(default_factory=dict)
    """`step/<uuid>` -> status, of the owner and of every other entity that has not ended."""
    parked_since: datetime | None = None
    """Not None: a record could not be applied, everything later is parked behind it."""
    abandoned: bool = False
    """An operator dropped the rest."""
    waiting: list[Held] = field(default_factory=list)
    last_event_at: datetime | None = None
    is_stored: bool = False
    """It has a row already."""

    def copy(self) -> "Stream":
        """A state of its own."""
        position = self.position
        return Stream(
            self.subject,
            self.owner,
            StreamPosition(
                position.epoch,
                position.sequence,
                position.source,
                dict(position.ends),
                set(position.refused),
            ),
            dict(self.statuses),
            self.parked_since,
            self.abandoned,
            list(self.waiting),
            self.last_event_at,
            self.is_stored,
        )

    def row(self) -> Row:
        """As the table stream_position has it."""
        position = self.position
        return {
            "stream": self.subject,
            "epoch": position.epoch,
            "sequence": position.sequence,
            "source": position.source,
            "ends": position.ends,
            "refused": sorted(position.refused),
            "statuses": self.statuses,
            "parked_since": self.parked_since,
            "abandoned": self.abandoned,
            "num_waiting": len(self.waiting),
            "last_event_at": self.last_event_at,
        }


def new_stream(subject: str) -> Stream:
    """A stream of which nothing is known; ValueError when the subject names none of ours."""
    stream_kind(subject)
    owner = subject.partition("/")[2]
    if str(UUID(owner)) != owner:
        message = f"expected a uuid in lower case with hyphens, found {owner!r}"
        raise ValueError(message)
    return Stream(subject, owner)


def stored_stream(row: Mapping[str, object], waiting: list[Held]) -> Stream:
    """The state that a row of stream_position keeps."""
    stream = new_stream(cast("str", row["stream"]))
    ends = cast("dict[str, int]", row["ends"])
    refused = cast("list[tuple[int, str]]", row["refused"])
    stream.position = StreamPosition(
        cast("int", row["epoch"]),
        cast("int", row["sequence"]),
        cast("str", row["source"]),
        {int(epoch): sequence for epoch, sequence in ends.items()},
        {(epoch, source) for epoch, source in refused},
    )
    stream.statuses = dict(cast("dict[str, str]", row["statuses"]))
    stream.parked_since = cast("datetime | None", row["parked_since"])
    stream.abandoned = cast("bool", row["abandoned"])
    stream.last_event_at = cast("datetime | None", row["last_event_at"])
    stream.waiting = waiting
    stream.is_stored = True
    return stream


def jump_over_gap(position: StreamPosition, envelope: Envelope) -> None:
    """Give up what is missing before this record, so that `judge` calls it NEXT."""
    before = (
        envelope.continues if envelope.sequence == 1 and envelope.continues is not None else None
    )
    epoch, sequence = before if before is not None else (envelope.epoch, envelope.sequence - 1)
    if epoch > position.epoch:
        if position.epoch:
            position.ends[position.epoch] = position.sequence
        position.source = envelope.source if epoch == envelope.epoch else ""
        position.epoch = epoch
    position.sequence = sequence

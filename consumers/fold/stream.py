"""What the projection knows of a stream: position, its entities' statuses, waiting records.

A row of the table `stream_position`, loaded while the stream has records to fold.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import cast
from uuid import UUID

from consumers.fold.rows import Row
from consumers.fold.unapplied import Unapplied, waiting_envelope
from schemas.catalogue import stream_kind
from schemas.decision import Drops
from schemas.streams import StreamPosition
from schemas.waiting import WaitingRecords


@dataclass(slots=True)
class Stream:
    """One stream's state. Not thread-safe."""

    subject: str
    owner: str
    """The uuid in the subject."""
    position: StreamPosition = field(default_factory=StreamPosition)
    statuses: dict[str, str] = field(default_factory=dict)
    """`step/<uuid>` -> status, of the owner and of what it has created; see `forgets`."""
    parked_since: datetime | None = None
    """Not None: a record could not be applied; everything after it is parked too."""
    dropped: bool = False
    """An operator dropped the rest of the stream."""
    drops: Drops = field(default_factory=dict)
    """What operators dropped of it."""
    waiting: WaitingRecords[Unapplied] = field(default_factory=WaitingRecords)
    """Records after a gap."""
    last_event_at: datetime | None = None
    is_stored: bool = False
    """`stream_position` has its row."""
    ended: dict[str, str] = field(default_factory=dict, compare=False)
    """`group/<uuid>` -> final status, of what has ended in this batch. Its row may not be committed
    yet, so that the tables do not show which stream owns it."""
    ended_before: dict[str, str] = field(default_factory=dict, compare=False)
    """The same of the stream's batch before, which may still be in flight."""

    @property
    def forgets(self) -> bool:
        """Whether what has ended leaves `statuses`, because its row names its stream.

        A training has too many groups to keep them; an evaluation keeps its own.
        """
        return not self.subject.startswith("evaluation/")

    def remembers(self, name: str) -> bool:
        """Whether it knows without the tables that it has created this entity."""
        return name in self.statuses or name in self.ended or name in self.ended_before

    def end_batch(self) -> None:
        """Forget what had ended before this batch: those rows are committed by now."""
        self.ended_before, self.ended = self.ended, {}

    def row(self) -> Row:
        """The row of `stream_position`."""
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
            "dropped": self.dropped,
            "drops": self.drops,
            "num_waiting": len(self.waiting),
            "last_event_at": self.last_event_at,
        }


def new_stream(subject: str) -> Stream:
    """A stream before its first record. ValueError unless the subject is `<kind>/<uuid>`."""
    stream_kind(subject)
    owner = subject.partition("/")[2]
    if str(UUID(owner)) != owner:
        message = f"{owner!r} in the subject {subject!r} is not a lower-case uuid with hyphens"
        raise ValueError(message)
    return Stream(subject, owner)


def stored_stream(row: Mapping[str, object], waiting: Iterable[Unapplied]) -> Stream:
    """The stream that a row of `stream_position` describes."""
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
    stream.dropped = cast("bool", row["dropped"])
    stream.drops = dict(cast("Drops", row["drops"]))
    stream.last_event_at = cast("datetime | None", row["last_event_at"])
    for unapplied in waiting:
        stream.waiting.add(waiting_envelope(unapplied), unapplied, stream.position)
    stream.is_stored = True
    return stream

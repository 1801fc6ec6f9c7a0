"""The rules of a stream: which record is next, a duplicate, beyond a gap, or fenced.

Pure state. The projector stores it with the rows; a resuming trainer computes it from the log. Both
therefore agree on which records count. `waiting` keeps the records beyond a gap.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from schemas.event import Envelope, StreamPoint


class RecordOrder(Enum):
    """A record's order relative to what was read of its stream before."""

    NEXT = "next"
    """Apply it."""
    DUPLICATE = "duplicate"
    """Already applied: ignore and count it."""
    GAP = "gap"
    """A record before it is missing: keep it until that arrives."""
    FENCED = "fenced"
    """From an older epoch, another source or an invalid claim: refuse, keep and count it."""


class Epoch(NamedTuple):
    """The epoch that a writer stamps on its events."""

    number: int
    continues: StreamPoint | None
    """The stream's last point before it, named by its first event; None in epoch 1."""


@dataclass(slots=True)
class StreamPosition:
    """How far one stream has been read. Not thread-safe."""

    epoch: int = 0
    """0 before the first record."""
    sequence: int = 0
    source: str = ""
    """Writer of the current epoch."""
    ends: dict[int, int] = field(default_factory=dict)
    """Last sequence of every older epoch."""
    refused: set[tuple[int, str]] = field(default_factory=set)
    """(epoch, source) of invalid claims: everything from them is fenced."""

    @property
    def point(self) -> StreamPoint:
        """The last record applied; (0, 0) before the first."""
        return StreamPoint(self.epoch, self.sequence)

    def classify(self, envelope: Envelope) -> RecordOrder:
        """This record's order. Changes nothing."""
        epoch, sequence = envelope.epoch, envelope.sequence
        if (epoch, envelope.source) in self.refused:
            return RecordOrder.FENCED
        if epoch < self.epoch:
            is_applied = sequence <= self.ends.get(epoch, 0)
            return RecordOrder.DUPLICATE if is_applied else RecordOrder.FENCED
        if epoch == self.epoch:
            if envelope.source != self.source:
                return RecordOrder.FENCED
            if sequence <= self.sequence:
                return RecordOrder.DUPLICATE
            return RecordOrder.NEXT if sequence == self.sequence + 1 else RecordOrder.GAP
        return self._classify_claim(envelope)

    def _classify_claim(self, envelope: Envelope) -> RecordOrder:
        if envelope.sequence > 1:
            return RecordOrder.GAP
        if self.epoch == 0 and envelope.epoch == 1:
            return RecordOrder.NEXT if envelope.continues is None else RecordOrder.FENCED
        if envelope.continues is None or envelope.continues.epoch != envelope.epoch - 1:
            return RecordOrder.FENCED
        if envelope.continues == self.point:
            return RecordOrder.NEXT
        return RecordOrder.GAP if envelope.continues > self.point else RecordOrder.FENCED

    def advance(self, envelope: Envelope) -> None:
        """Apply a record that `classify` called NEXT."""
        if envelope.epoch > self.epoch:
            if self.epoch:
                self.ends[self.epoch] = self.sequence
            self.source = envelope.source
            self.epoch = envelope.epoch
        self.sequence = envelope.sequence

    def refuse(self, envelope: Envelope) -> bool:
        """Remember a fenced claim: its writer's later records are then fenced, not a gap.

        False for a fenced record that is no claim. Tell the waiting records (`waiting.fence`).
        """
        is_claim = envelope.sequence == 1 and envelope.epoch > self.epoch
        if is_claim:
            self.refused.add((envelope.epoch, envelope.source))
        return is_claim

    def skip_gap(self, envelope: Envelope) -> None:
        """Give up the records missing before a GAP record; `classify` then calls it NEXT."""
        is_claim = envelope.sequence == 1 and envelope.continues is not None
        before = envelope.continues if is_claim else None
        epoch, sequence = before or (envelope.epoch, envelope.sequence - 1)
        if epoch > self.epoch:
            if self.epoch:
                self.ends[self.epoch] = self.sequence
            self.source = envelope.source if epoch == envelope.epoch else ""
            self.epoch = epoch
        self.sequence = sequence

    def next_epoch(self) -> Epoch:
        """The epoch that a new writer opens after everything read so far."""
        return Epoch(self.epoch + 1, self.point if self.epoch else None)

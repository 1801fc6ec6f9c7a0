"""What a reader knows of one stream, and what it does with the next record.

The proof that nothing is doubled, lost or forged.

Pure state, one rule per verdict. The projector keeps it beside the rows; a resuming trainer
computes it from the log.
"""

from dataclasses import dataclass, field
from enum import Enum

from schemas.event import Envelope, StreamPoint


class RecordOrder(Enum):
    """What a record is to a reader of its stream."""

    NEXT = "next"
    """Apply it."""
    DUPLICATE = "duplicate"
    """Applied already: ignore and count it."""
    GAP = "gap"
    """Something before it is missing: it waits."""
    FENCED = "fenced"
    """An older epoch, a foreign source or an invalid claim: refuse, keep and count it."""


@dataclass(slots=True)
class StreamPosition:
    """How far one stream has been read. Not thread-safe; `advance` is the only change."""

    epoch: int = 0
    """0 before the first record."""
    sequence: int = 0
    source: str = ""
    """Writer of the current epoch."""
    ends: dict[int, int] = field(default_factory=dict)
    """Last sequence of every older epoch."""
    refused: set[tuple[int, str]] = field(default_factory=set)
    """(epoch, source) of claims that were not valid: everything of theirs is refused."""

    @property
    def point(self) -> StreamPoint:
        """The last record applied; (0, 0) before the first."""
        return StreamPoint(self.epoch, self.sequence)

    def judge(self, envelope: Envelope) -> RecordOrder:
        """What this record is; changes nothing."""
        epoch, sequence = envelope.epoch, envelope.sequence
        if (epoch, envelope.source) in self.refused:
            return RecordOrder.FENCED
        if epoch < self.epoch:
            return (
                RecordOrder.DUPLICATE if sequence <= self.ends.get(epoch, 0) else RecordOrder.FENCED
            )
        if epoch == self.epoch:
            if envelope.source != self.source:
                return RecordOrder.FENCED
            if sequence <= self.sequence:
                return RecordOrder.DUPLICATE
            return RecordOrder.NEXT if sequence == self.sequence + 1 else RecordOrder.GAP
        return self._judge_claim(envelope)

    def _judge_claim(self, envelope: Envelope) -> RecordOrder:
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
        """Take a record that `judge` called NEXT."""
        if envelope.epoch > self.epoch:
            if self.epoch:
                self.ends[self.epoch] = self.sequence
            self.source = envelope.source
            self.epoch = envelope.epoch
        self.sequence = envelope.sequence

    def refuse(self, envelope: Envelope) -> None:
        """Remember a fenced claim, so that what follows it from the same writer is fenced too, instead of waiting for ever."""
        if envelope.sequence == 1 and envelope.epoch > self.epoch:
            self.refused.add((envelope.epoch, envelope.source))

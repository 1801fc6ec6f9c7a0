"""Records of one stream beyond a gap, released in stream order as the gap fills.

The projector and a resuming trainer both keep them here, so that they agree on what counts. A
record, once no longer beyond a gap, stays so: positions only advance. Each record therefore moves
once, from the records that wait to those that are ready.
"""

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count
from typing import Generic, NamedTuple, TypeVar

from schemas.event import Envelope, StreamPoint
from schemas.streams import RecordOrder, StreamPosition

Record = TypeVar("Record")


class Claim(NamedTuple):
    """The first record of an epoch, by the point that it continues."""

    continues: StreamPoint
    number: int


class Ready(NamedTuple):
    """A record that is no longer beyond a gap; sorts in stream order, then by arrival."""

    epoch: int
    sequence: int
    number: int


class WaitingRecords(Generic[Record]):
    """Not thread-safe. Every operation takes O(log n) per record, spread over its stay."""

    def __init__(self) -> None:
        self._numbers = count()
        self._records: dict[int, Record] = {}
        """By number, which is the order of arrival."""
        self._groups: dict[int, dict[str, list[tuple[int, int]]]] = {}
        """Epoch -> source -> heap of (sequence, number)."""
        self._epochs: list[int] = []
        """Heap of the groups' epochs."""
        self._claims: list[Claim] = []
        self._ready: list[Ready] = []

    def __len__(self) -> int:
        """How many wait."""
        return len(self._records)

    def __eq__(self, other: object) -> bool:
        """Whether the same records wait, in the same order of arrival."""
        return isinstance(other, WaitingRecords) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __iter__(self) -> Iterator[Record]:
        """By arrival."""
        return iter(self._records.values())

    def add(self, envelope: Envelope, record: Record, position: StreamPosition) -> None:
        """A record that `position.classify` calls GAP; one that it does not is ready at once."""
        number = next(self._numbers)
        self._records[number] = record
        epoch, sequence, source = envelope.epoch, envelope.sequence, envelope.source
        if position.classify(envelope) is not RecordOrder.GAP:
            heappush(self._ready, Ready(epoch, sequence, number))
            return
        if epoch not in self._groups:
            self._groups[epoch] = {}
            heappush(self._epochs, epoch)
        heappush(self._groups[epoch].setdefault(source, []), (sequence, number))
        if sequence == 1 and envelope.continues is not None:
            heappush(self._claims, Claim(envelope.continues, number))

    def fence(self, epoch: int, source: str) -> None:
        """A claim was refused: what this source wrote in this epoch is ready, to be refused."""
        for sequence, number in self._groups.get(epoch, {}).pop(source, ()):
            heappush(self._ready, Ready(epoch, sequence, number))

    def pop_released(self, position: StreamPosition) -> Record | None:
        """The first record in stream order that is no longer beyond a gap; None when all are."""
        self._collect(position)
        while self._ready:
            number = heappop(self._ready).number
            if number in self._records:
                return self._records.pop(number)
        return None

    def _collect(self, position: StreamPosition) -> None:
        """Move what is no longer beyond a gap to the records that are ready."""
        while self._epochs and self._epochs[0] < position.epoch:
            epoch = heappop(self._epochs)
            for source in list(self._groups[epoch]):
                self.fence(epoch, source)
            del self._groups[epoch]
        for source in list(self._groups.get(position.epoch, ())):
            if source != position.source:
                self.fence(position.epoch, source)
        own = self._groups.get(position.epoch, {}).get(position.source, [])
        while own and own[0][0] <= position.sequence + 1:
            sequence, number = heappop(own)
            heappush(self._ready, Ready(position.epoch, sequence, number))
        while self._claims and self._claims[0].continues <= position.point:
            claim = heappop(self._claims)
            heappush(self._ready, Ready(claim.continues.epoch + 1, 1, claim.number))

"""The pipe: parsed records in; rows, stream states and what is not applied out.

Pure but for its streams.

    parse -> order -> apply (transition, projectors) -> rows

The same in the live projection and in a rebuild.
"""

import gc
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from consumers.fold.apply import Rejection, Write, apply_event
from consumers.fold.order import Order, OrderRules, PartitionProgress
from consumers.fold.ownership import FindOwned, no_tables
from consumers.fold.parse import ParsedRecord, parse_record
from consumers.fold.rows import Rows
from consumers.fold.stream import Stream
from consumers.fold.unapplied import Coordinates, Unapplied
from schemas.event import Envelope

YOUNG_OBJECTS = 200_000
"""Allocated and not freed before the first garbage collection: more than a batch leaves behind."""


class ReplayFilter(NamedTuple):
    """Which records a replay treats otherwise than the live projection would."""

    parked: frozenset[tuple[str, int, int]] = frozenset()
    """(topic, partition, offset) of records that are parked even if this code could apply them."""
    wanted: Callable[[ParsedRecord], bool] | None = None
    """Which records are folded; None: all."""
    dropped: Mapping[str, Collection[str]] = MappingProxyType({})
    """As `OrderRules.dropped`."""


EVERYTHING = ReplayFilter()


@dataclass(frozen=True, slots=True)
class FoldedBatch:
    """Everything that one transaction writes."""

    rows: Rows
    streams: Mapping[str, Stream]
    """The streams that changed."""
    unapplied: Mapping[Coordinates, Unapplied]
    """Records of this batch that are not applied, and earlier ones whose state has changed."""
    released: set[Coordinates]
    """Earlier records that were taken again; those still not applied are in `unapplied` too."""
    decided: Collection[str]
    """As `Order.decided`; then the batch ends there."""
    partitions: Mapping[tuple[str, int], PartitionProgress]

    @property
    def num_events(self) -> int:
        """Events applied."""
        return sum(progress.num_events for progress in self.partitions.values())


class Fold:
    """Folds one batch. Not thread-safe.

    `streams` must contain every stored stream of the batch's records; those that get a record
    change. With `write` every event's operations go there instead of into `batch.rows`.
    `find_owned` asks the tables; its errors end the batch.
    """

    def __init__(
        self,
        streams: dict[str, Stream],
        *,
        log_id: str,
        write: Write | None = None,
        find_owned: FindOwned = no_tables,
        replay_filter: ReplayFilter = EVERYTHING,
        memory: dict[str, list[Unapplied]] | None = None,
    ) -> None:
        """`memory`: as `Order.memory`; it outlives the batch."""
        self._wanted = replay_filter.wanted
        self._partitions: dict[tuple[str, int], PartitionProgress] = {}
        self.num_taken = 0
        """Records that `take_all` has taken."""
        # Nothing that `Order` calls refers to this object: in a cycle each batch would stay in
        # memory until the rare garbage collection of a projector.
        rows = Rows()
        write_event = rows.add if write is None else write

        def apply(stream: Stream, envelope: Envelope) -> Rejection | None:
            return apply_event(stream, envelope, write_event, find_owned)

        rules = OrderRules(log_id, replay_filter.parked, replay_filter.dropped)
        self._order = order = Order(streams, apply, rules, memory=memory)
        self.batch = FoldedBatch(
            *(rows, order.changed, order.unapplied, order.released, order.decided, self._partitions)
        )

    def take_all(self, parsed_records: Iterable[ParsedRecord]) -> FoldedBatch:
        """Fold records, each partition's in order, and advance the partitions' positions.

        Ends early, at `num_taken`, behind a decision that has a stream tried again.
        """
        partitions, wanted, order = self._partitions, self._wanted, self._order
        for number, parsed in enumerate(parsed_records, 1):
            self.num_taken = number
            topic, partition, offset, _, _, appended_at = parsed.record
            progress = partitions.get((topic, partition))
            if progress is None:
                progress = partitions[topic, partition] = PartitionProgress()
            if offset >= progress.next_offset:
                progress.next_offset, progress.appended_at = offset + 1, appended_at
            if wanted is None or wanted(parsed):
                order.take(parsed, progress)
                if order.decided:
                    break
        return self.batch

    def skip_to(self, at: tuple[str, int], offset: int) -> None:
        """Advance a partition's position over offsets that hold no record."""
        progress = self._partitions.setdefault((at[0], at[1]), PartitionProgress())
        progress.next_offset = max(progress.next_offset, offset)

    def stay_at(self, at: tuple[str, int], offset: int) -> None:
        """Move a partition's position not back behind this, where it was before."""
        progress = self._partitions[at[0], at[1]]
        if progress.next_offset <= offset:
            progress.next_offset, progress.appended_at = offset, None

    def retry(self, parked: Iterable[Unapplied]) -> int:
        """Fold parked records of streams that are no longer parked; the number applied."""
        progress = PartitionProgress()
        for unapplied in parked:
            self._order.remove_unapplied(unapplied)
            self._order.take(parse_record(unapplied.record, unapplied.log_id), progress)
        return progress.num_events


def missing_streams(
    parsed_records: Iterable[ParsedRecord], known: Mapping[str, Stream]
) -> list[str]:
    """The streams of these records that must be loaded before they are folded."""
    return sorted({parsed.stream for parsed in parsed_records if parsed.stream not in known})


def reduce_gc_frequency() -> None:
    """Make garbage collection rare in this process: a batch is 100,000 objects without a cycle.

    With Python's defaults the collector walks all of them again and again: 5.0 instead of 3.6
    CPU-seconds for 160,000 rows. Modules loaded by now are never looked at again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 20, 20)

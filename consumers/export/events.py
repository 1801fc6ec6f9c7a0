"""The log's events as the projection applies them: in stream order, without what it would hold."""

from collections.abc import Callable, Collection, Iterator
from uuid import UUID

from consumers.fold.apply import Rejection, apply_event
from consumers.fold.operator_drops import Drops
from consumers.fold.order import Order, OrderRules, PartitionProgress
from consumers.fold.parse import ParsedRecord, parse_record
from consumers.fold.stream import Stream, new_stream
from consumers.log.reader import LogReader, TopicPartition
from consumers.tail.reading import read_bounded
from schemas.catalogue import stream_kind
from schemas.event import Envelope, Event
from schemas.wire import read_payload

Wanted = Callable[[ParsedRecord], bool]


class StreamReader:
    """Events of many streams, those of each in order. Not thread-safe.

    Duplicates, records after a gap, fenced and invalid ones are left out, as in the tables.
    """

    def __init__(self, log_id: str, drops: Drops) -> None:
        self._streams: dict[str, Stream] = {}
        self._applied: list[Event] = []
        self._order = Order(self._streams, self._apply, OrderRules(log_id, drops))
        self._ended = new_stream(f"rollout/{UUID(int=0)}")
        self._ended.abandoned = True

    def _apply(self, stream: Stream, envelope: Envelope) -> Rejection | None:
        rejection = apply_event(stream, envelope, lambda operations: None)  # noqa: ARG005  # Write's signature
        if rejection is None:
            self._applied.append(Event(envelope, read_payload(envelope)))
        return rejection

    def read(
        self,
        reader: LogReader,
        partitions: Collection[TopicPartition],
        until: dict[TopicPartition, int],
        wanted: Wanted,
    ) -> Iterator[Event]:
        """Every wanted event of these partitions."""
        starts = reader.beginning_offsets(list(partitions))
        progress = PartitionProgress()
        for record in read_bounded(reader, starts, {at: until[at] for at in partitions}):
            parsed = parse_record(record)
            if parsed.stream is None or not wanted(parsed):
                continue
            self._order.take(parsed, progress)
            if self._applied:
                yield from self._applied
                self._applied.clear()
            self._order.changed.clear()
            self._order.held.clear()
            self._order.released.clear()

    def forget(self, subject: str) -> None:
        """Read no more of a stream that has ended; frees its state."""
        self._streams[subject] = self._ended


def of_kinds(kinds: Collection[str], trainings: Collection[UUID]) -> Wanted:
    """Records of streams of these kinds and of these trainings; of all when there are none."""
    owners = {str(training) for training in trainings}

    def is_wanted(parsed: ParsedRecord) -> bool:
        if parsed.stream is None or stream_kind(parsed.stream) not in kinds:
            return False
        if not owners:
            return True
        envelope = parsed.envelope
        if envelope is not None and envelope.training_id is not None:
            return str(envelope.training_id) in owners
        return parsed.stream.partition("/")[2] in owners

    return is_wanted

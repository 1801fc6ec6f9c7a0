"""The log's events as the projection applies them: in stream order, and no others.

For readers that need events and no tables: `export`, experiment trackers.
"""

from uuid import UUID

from consumers.fold.apply import Rejection, apply_event
from consumers.fold.order import Order, OrderRules, PartitionProgress
from consumers.fold.parse import ParsedRecord
from consumers.fold.stream import Stream, new_stream
from schemas.event import Envelope, Event
from schemas.wire import read_payload


class OrderedEvents:
    """Puts records of many streams in order, each stream from its beginning. Not thread-safe.

    Duplicates, records after a gap, fenced and invalid ones are left out, as in the tables, and so
    is what operators dropped. What is behind a record that cannot be applied is kept in memory.
    """

    def __init__(self, log_id: str) -> None:
        self._streams: dict[str, Stream] = {}
        self._applied: list[Event] = []
        self._progress = PartitionProgress()
        self._order = Order(self._streams, self._apply, OrderRules(log_id), memory={})
        self._ended = new_stream(f"rollout/{UUID(int=0)}")

    def take(self, parsed: ParsedRecord) -> list[Event]:
        """The events that this record brings: its own, and those that waited for it."""
        if self._streams.get(parsed.stream) is self._ended:
            return []
        self._order.take(parsed, self._progress)
        applied, self._applied = self._applied, []
        self._order.changed.clear()
        self._order.unapplied.clear()
        self._order.released.clear()
        return applied

    def forget(self, subject: str) -> None:
        """Read no more of a stream that has ended; frees its state."""
        self._streams[subject] = self._ended

    def _apply(self, stream: Stream, envelope: Envelope) -> Rejection | None:
        rejection = apply_event(stream, envelope, lambda operations: None)  # noqa: ARG005  # Write's signature
        if rejection is None:
            self._applied.append(Event(envelope, read_payload(envelope)))
        return rejection

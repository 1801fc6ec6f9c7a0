"""What happens to a record: applied, ignored as a duplicate, held or dropped; nothing else can.

Second stage: puts each stream's records in order. A record after a gap waits and is released when
the gap fills; a fenced one is refused; one that cannot be applied is parked, and everything else of
its stream behind it. What a stream holds never touches another stream.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from consumers.fold.apply import Rejection
from consumers.fold.held import Coordinates, Held, HeldAs, Kind, waiting_envelope
from consumers.fold.operator_drops import Drops, value_hash
from consumers.fold.parse import MAX_PROBLEM_CHARS, ParsedRecord
from consumers.fold.stream import Stream, new_stream
from schemas.event import Envelope
from schemas.streams import RecordOrder
from schemas.waiting import WaitingRecords

BEHIND = "behind a parked record of its stream"
Apply = Callable[[Stream, Envelope], Rejection | None]


@dataclass(slots=True)
class PartitionProgress:
    """What became of one partition's records."""

    next_offset: int = 0
    appended_at: object = None
    num_events: int = 0
    num_duplicates: int = 0


@dataclass(frozen=True, slots=True)
class OrderRules:
    """What decides about records besides their streams."""

    log_id: str
    drops: Drops
    parked: frozenset[tuple[str, int, int]] = frozenset()
    """(topic, partition, offset) of records that are parked even if they could be applied."""


@dataclass(slots=True)
class Order:
    """The records of one batch, put in order. Not thread-safe."""

    streams: dict[str, Stream]
    """Must contain every stored stream of these records; changed in place."""
    apply: Apply
    """The next stage."""
    rules: OrderRules
    changed: dict[str, Stream] = field(default_factory=dict)
    """Streams that got a record."""
    held: dict[Coordinates, Held] = field(default_factory=dict)
    """Records that are held from now on."""
    released: set[Coordinates] = field(default_factory=set)
    """Records that are no longer held."""

    def take(self, parsed: ParsedRecord, progress: PartitionProgress) -> None:
        """One record, and the records that waited for it."""
        subject = parsed.stream
        if subject is None:
            if self.rules.drops.scope(None, parsed.record.value) is None:
                self._hold(parsed, "parked", "unreadable", parsed.problem)
            return
        stream = self.streams.get(subject)
        if stream is None:
            stream = self.streams[subject] = new_stream(subject)
        self.changed[subject] = stream
        self._decide(stream, parsed, progress)
        if stream.waiting:
            self.release(stream, progress)

    def _decide(self, stream: Stream, parsed: ParsedRecord, progress: PartitionProgress) -> None:
        if stream.abandoned:
            return
        if stream.parked_since is not None:
            self._hold(parsed, "parked", "behind", BEHIND)
            return
        envelope = parsed.envelope
        if envelope is None:
            if not self._drop(stream, parsed):
                self._park(stream, parsed, Rejection("unreadable", parsed.problem))
            return
        match stream.position.classify(envelope):
            case RecordOrder.NEXT:
                self._next(stream, parsed, envelope, progress)
            case RecordOrder.DUPLICATE:
                progress.num_duplicates += 1
            case RecordOrder.GAP:
                epoch, sequence = stream.position.point
                reason = f"waits for the records after epoch {epoch}, sequence {sequence}"
                held = self._hold(parsed, "waiting", "gap", reason)
                stream.waiting.add(envelope, held, stream.position)
            case RecordOrder.FENCED:
                if stream.position.refuse(envelope):
                    stream.waiting.fence(envelope.epoch, envelope.source)
                epoch, sequence = stream.position.point
                reason = (
                    f"epoch {envelope.epoch} of {envelope.source} does not continue the stream,"
                    f" which is at epoch {epoch}, sequence {sequence}"
                )
                self._hold(parsed, "refused", "fenced", reason)

    def _next(
        self, stream: Stream, parsed: ParsedRecord, envelope: Envelope, progress: PartitionProgress
    ) -> None:
        if self._drop(stream, parsed):
            if not stream.abandoned:
                stream.position.advance(envelope)
            return
        given_up = self.rules.drops.after_gap(stream.subject, stream.position.point)
        if given_up and value_hash(parsed.record.value) not in given_up:
            # Part of a gap that an operator gave up, met before the record behind the gap: another
            # partition has that one.
            progress.num_duplicates += 1
            return
        if self.rules.parked and parsed.record[:3] in self.rules.parked:
            rejection: Rejection | None = Rejection(
                "unknown_schema", "parked in the tables that this is compared with"
            )
        else:
            rejection = self.apply(stream, envelope)
        if rejection is not None:
            self._park(stream, parsed, rejection)
            return
        stream.position.advance(envelope)
        stream.last_event_at = envelope.time
        progress.num_events += 1

    def release(self, stream: Stream, progress: PartitionProgress) -> None:
        """Take the waiting records as far as the gap has filled or was given up."""
        self.changed[stream.subject] = stream
        while stream.waiting and stream.parked_since is None:
            held = stream.waiting.pop_released(stream.position)
            if held is None and (held := self._after_given_up_gap(stream)) is None:
                return
            self.unhold(held)
            parsed = ParsedRecord(held.record, stream.subject, held.envelope, "")
            self._decide(stream, parsed, progress)

    def _after_given_up_gap(self, stream: Stream) -> Held | None:
        """Take the waiting record whose gap an operator gave up; the position skips the gap."""
        values = self.rules.drops.after_gap(stream.subject, stream.position.point)
        if values:
            for number, held in stream.waiting.numbered():
                if value_hash(held.record.value) in values:
                    stream.position.skip_gap(waiting_envelope(held))
                    return stream.waiting.remove(number)
        return None

    def _drop(self, stream: Stream, parsed: ParsedRecord) -> bool:
        """Whether an operator dropped this record, or the stream from it on."""
        scope = self.rules.drops.scope(stream.subject, parsed.record.value)
        if scope == "rest":
            stream.abandoned = True
            for held in stream.waiting:
                self.unhold(held)
            stream.waiting = WaitingRecords()
        return scope is not None

    def _park(self, stream: Stream, parsed: ParsedRecord, rejection: Rejection) -> None:
        held = self._hold(parsed, "parked", rejection.kind, rejection.reason)
        stream.parked_since = held.since
        # As if they came only now, so that what is held depends on no order of arrival.
        waiting, stream.waiting = stream.waiting, WaitingRecords()
        for behind in waiting:
            self.unhold(behind)
            later = ParsedRecord(behind.record, stream.subject, behind.envelope, "")
            self._hold(later, "parked", "behind", BEHIND)

    def _hold(self, parsed: ParsedRecord, held_as: HeldAs, kind: Kind, reason: str) -> Held:
        record, subject, envelope, _ = parsed
        reason = reason[:MAX_PROBLEM_CHARS]
        held = Held(self.rules.log_id, record, held_as, kind, reason, subject, envelope)
        self.held[held.coordinates] = held
        return held

    def unhold(self, held: Held) -> None:
        """Hold a record no longer."""
        if self.held.pop(held.coordinates, None) is None:
            self.released.add(held.coordinates)

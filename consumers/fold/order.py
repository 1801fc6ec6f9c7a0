"""What happens to a record: applied, ignored as a duplicate, held or dropped; nothing else can.

Second stage: puts each stream's records in order. A record after a gap waits and is released when
the gap fills; a fenced one is refused; one that cannot be applied is parked, and everything else of
its stream behind it. An operator's decision about the stream takes effect where it is read. What a
stream holds never touches another stream. A foreign record is refused and touches none.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from consumers.fold.apply import Rejection
from consumers.fold.held import Coordinates, Held, HeldAs, Kind, waiting_envelope
from consumers.fold.parse import MAX_PROBLEM_CHARS, ParsedRecord, parse_record
from consumers.fold.stream import Stream, new_stream
from schemas.base import Payload
from schemas.decision import DropUndone, GapDropped, decide, value_hash
from schemas.event import Envelope, StreamPoint
from schemas.streams import RecordOrder
from schemas.waiting import WaitingRecords
from schemas.wire import InvalidPayloadError, UnknownSchemaError, read_payload

BEHIND = "behind a parked record of its stream"
DROPPED = "an operator dropped the rest of the stream (cua-project parked drop --rest)"
PARKED_THERE = Rejection("unknown_schema", "parked in the tables that this is compared with")
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
    parked: frozenset[tuple[str, int, int]] = frozenset()
    """(topic, partition, offset) of records that are parked even if they could be applied."""
    dropped: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Stream -> hashes of values that are parked even if they could be applied: what the tables
    dropped that this is compared with. The decision that drops them is in the log, behind them."""


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
    decided: set[str] = field(default_factory=set)
    """Streams whose parked records are to be tried again once the batch is written, because of an
    operator's decision. Until then they stay parked, and no later record of them may be taken."""
    memory: dict[str, list[Held]] | None = None
    """Without tables: the parked and abandoned records of every stream, which are then tried again
    at once."""

    def take(self, parsed: ParsedRecord, progress: PartitionProgress) -> None:
        """One record, and the records that waited for it."""
        if parsed.is_foreign:
            self._hold(parsed, "refused", "foreign", parsed.problem)
            return
        subject = parsed.stream
        stream = self.streams.get(subject)
        if stream is None:
            stream = self.streams[subject] = new_stream(subject)
        self.changed[subject] = stream
        is_decision = parsed.envelope is not None and parsed.envelope.is_decision
        # Behind a decision that was not carried out yet, the next one waits for that.
        if parsed.envelope is not None and is_decision and subject not in self.decided:
            self._obey(stream, parsed, parsed.envelope, progress)
        else:
            self._decide(stream, parsed, progress)
        if stream.waiting:
            self.release(stream, progress)

    def _obey(
        self, stream: Stream, parsed: ParsedRecord, envelope: Envelope, progress: PartitionProgress
    ) -> None:
        """An operator's decision; what has no effect (any more) is counted as a duplicate."""
        payload = self._read_decision(parsed, envelope)
        if isinstance(payload, Rejection):
            if stream.abandoned or stream.parked_since is not None:
                self._decide(stream, parsed, progress)
            elif not self._drop(stream, parsed):
                self._park(stream, parsed, payload)
            return
        if isinstance(payload, GapDropped):
            is_new = self._skip_gap(stream, payload)
        else:
            is_new = decide(stream.drops, payload)
        if not is_new:
            progress.num_duplicates += 1
            return
        progress.num_events += 1
        if isinstance(payload, DropUndone) and stream.abandoned:
            stream.abandoned, stream.parked_since = False, envelope.time
        if stream.parked_since is not None:
            self.decided.add(stream.subject)
            self._try_again(stream, progress)

    def _read_decision(self, parsed: ParsedRecord, envelope: Envelope) -> Payload | Rejection:
        if self._is_parked_there(parsed):
            return PARKED_THERE
        try:
            return read_payload(envelope)
        except UnknownSchemaError as error:
            return Rejection("unknown_schema", str(error))
        except InvalidPayloadError as error:
            return Rejection("invalid", str(error))

    def _try_again(self, stream: Stream, progress: PartitionProgress) -> None:
        """Take what is in memory of the stream as if it came only now."""
        if self.memory is None:
            return
        self.decided.remove(stream.subject)
        stream.parked_since = None
        tried = self.memory.pop(stream.subject, ())
        for held in sorted(tried, key=lambda held: held.coordinates):
            self.unhold(held)
            self.take(parse_record(held.record, held.log_id), progress)

    def _decide(self, stream: Stream, parsed: ParsedRecord, progress: PartitionProgress) -> None:
        if stream.abandoned:
            self._hold(parsed, "abandoned", "behind", DROPPED)
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
        if self._is_parked_there(parsed):
            rejection: Rejection | None = PARKED_THERE
        else:
            rejection = self.apply(stream, envelope)
        if rejection is not None:
            self._park(stream, parsed, rejection)
            return
        stream.position.advance(envelope)
        stream.last_event_at = envelope.time
        progress.num_events += 1

    def release(self, stream: Stream, progress: PartitionProgress) -> None:
        """Take the waiting records as far as the gap has filled."""
        self.changed[stream.subject] = stream
        while stream.waiting and stream.parked_since is None:
            held = stream.waiting.pop_released(stream.position)
            if held is None:
                return
            self.unhold(held)
            parsed = ParsedRecord(held.record, stream.subject, held.envelope, "")
            self._decide(stream, parsed, progress)

    def _skip_gap(self, stream: Stream, dropped: GapDropped) -> bool:
        """Skip the gap before the first waiting record, which is next then; whether one waits."""
        before = StreamPoint(dropped.from_epoch, dropped.from_sequence)
        if stream.position.point != before or not stream.waiting:
            return False
        waiting = map(waiting_envelope, stream.waiting)
        stream.position.skip_gap(min(waiting, key=lambda envelope: envelope.point))
        return True

    def _is_parked_there(self, parsed: ParsedRecord) -> bool:
        """Whether the tables that this is compared with could not apply a record."""
        rules = self.rules
        if rules.parked and parsed.record[:3] in rules.parked:
            return True
        dropped = rules.dropped.get(parsed.stream) if rules.dropped else None
        return dropped is not None and value_hash(parsed.record.value) in dropped

    def _drop(self, stream: Stream, parsed: ParsedRecord) -> bool:
        """Whether an operator dropped this record, or the stream from it on."""
        if not stream.drops:
            return False
        dropped = value_hash(parsed.record.value)
        scope = stream.drops.get(dropped)
        if scope == "record":
            stream.drops[dropped] = "passed"
        elif scope in {"rest", "abandoned"}:
            stream.drops[dropped] = "abandoned"
            stream.abandoned = True
            self._hold(parsed, "abandoned", "dropped", DROPPED)
            self._hold_waiting(stream, "abandoned")
        return scope is not None

    def _park(self, stream: Stream, parsed: ParsedRecord, rejection: Rejection) -> None:
        held = self._hold(parsed, "parked", rejection.kind, rejection.reason)
        stream.parked_since = held.since
        self._hold_waiting(stream, "parked")

    def _hold_waiting(self, stream: Stream, held_as: HeldAs) -> None:
        """As if they came only now, so that what is held depends on no order of arrival."""
        waiting, stream.waiting = stream.waiting, WaitingRecords()
        reason = DROPPED if held_as == "abandoned" else BEHIND
        for behind in waiting:
            self.unhold(behind)
            later = ParsedRecord(behind.record, stream.subject, behind.envelope, "")
            self._hold(later, held_as, "behind", reason)

    def _hold(self, parsed: ParsedRecord, held_as: HeldAs, kind: Kind, reason: str) -> Held:
        record, subject, envelope = parsed.record, parsed.stream, parsed.envelope
        reason = reason[:MAX_PROBLEM_CHARS]
        held = Held(self.rules.log_id, record, held_as, kind, reason, subject, envelope)
        self.held[held.coordinates] = held
        if self.memory is not None and held_as in {"parked", "abandoned"}:
            self.memory.setdefault(subject, []).append(held)
        return held

    def unhold(self, held: Held) -> None:
        """Hold a record no longer."""
        if self.held.pop(held.coordinates, None) is None:
            self.released.add(held.coordinates)

"""Decides about each record: it is applied, a duplicate, passed over, waiting, parked or refused.

Second stage: puts each stream's records in order. A record after a gap waits and is released when
the gap fills; a fenced one is refused; one that cannot be applied is parked, and everything else of
its stream behind it. An operator's decision about the stream takes effect where it is read: a
dropped record is passed over, the dropped rest of a stream is refused. A stream's records never
touch another stream. A foreign record is refused and touches none.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from consumers.fold.apply import Rejection
from consumers.fold.parse import MAX_PROBLEM_CHARS, ParsedRecord, parse_record
from consumers.fold.stream import Stream, new_stream
from consumers.fold.unapplied import Coordinates, Kind, Unapplied, UnappliedState, waiting_envelope
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
    unapplied: dict[Coordinates, Unapplied] = field(default_factory=dict)
    """Records of this batch that are not applied, and earlier ones whose state has changed."""
    released: set[Coordinates] = field(default_factory=set)
    """Earlier records that were taken again; those still not applied are in `unapplied` too."""
    decided: set[str] = field(default_factory=set)
    """Streams whose parked records are to be tried again once the batch is written, because of an
    operator's decision. Until then they stay parked, and no later record of them may be taken."""
    memory: dict[str, list[Unapplied]] | None = None
    """Without tables: the parked and given-up records of every stream, which are then tried again
    at once."""

    def take(self, parsed: ParsedRecord, progress: PartitionProgress) -> None:
        """One record, and the records that waited for it."""
        if parsed.is_foreign:
            self._set_aside(parsed, "refused", "foreign", parsed.problem)
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
            if stream.dropped or stream.parked_since is not None:
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
        if isinstance(payload, DropUndone) and stream.dropped:
            stream.dropped, stream.parked_since = False, envelope.time
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
        for unapplied in sorted(tried, key=lambda unapplied: unapplied.coordinates):
            self.remove_unapplied(unapplied)
            self.take(parse_record(unapplied.record, unapplied.log_id), progress)

    def _decide(self, stream: Stream, parsed: ParsedRecord, progress: PartitionProgress) -> None:
        if stream.dropped:
            self._set_aside(parsed, "refused", "behind", DROPPED)
            return
        if stream.parked_since is not None:
            self._set_aside(parsed, "parked", "behind", BEHIND)
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
                unapplied = self._set_aside(parsed, "waiting", "gap", reason)
                stream.waiting.add(envelope, unapplied, stream.position)
            case RecordOrder.FENCED:
                if stream.position.refuse(envelope):
                    stream.waiting.fence(envelope.epoch, envelope.source)
                epoch, sequence = stream.position.point
                reason = (
                    f"epoch {envelope.epoch} of {envelope.source} does not continue the stream,"
                    f" which is at epoch {epoch}, sequence {sequence}"
                )
                self._set_aside(parsed, "refused", "fenced", reason)

    def _next(
        self, stream: Stream, parsed: ParsedRecord, envelope: Envelope, progress: PartitionProgress
    ) -> None:
        if self._drop(stream, parsed):
            if not stream.dropped:
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
            unapplied = stream.waiting.pop_released(stream.position)
            if unapplied is None:
                return
            self.remove_unapplied(unapplied)
            parsed = ParsedRecord(unapplied.record, stream.subject, unapplied.envelope, "")
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
        elif scope in {"rest", "dropped"}:
            stream.drops[dropped] = "dropped"
            stream.dropped = True
            self._set_aside(parsed, "refused", "dropped", DROPPED)
            self._set_waiting_aside(stream, "refused")
        return scope is not None

    def _park(self, stream: Stream, parsed: ParsedRecord, rejection: Rejection) -> None:
        unapplied = self._set_aside(parsed, "parked", rejection.kind, rejection.reason)
        stream.parked_since = unapplied.since
        self._set_waiting_aside(stream, "parked")

    def _set_waiting_aside(self, stream: Stream, state: UnappliedState) -> None:
        """As if they came only now, so that their state depends on no order of arrival."""
        waiting, stream.waiting = stream.waiting, WaitingRecords()
        reason = DROPPED if state == "refused" else BEHIND
        for behind in waiting:
            self.remove_unapplied(behind)
            later = ParsedRecord(behind.record, stream.subject, behind.envelope, "")
            self._set_aside(later, state, "behind", reason)

    def _set_aside(
        self, parsed: ParsedRecord, state: UnappliedState, kind: Kind, reason: str
    ) -> Unapplied:
        record, subject, envelope = parsed.record, parsed.stream, parsed.envelope
        reason = reason[:MAX_PROBLEM_CHARS]
        unapplied = Unapplied(self.rules.log_id, record, state, kind, reason, subject, envelope)
        self.unapplied[unapplied.coordinates] = unapplied
        if self.memory is not None and unapplied.can_be_retried:
            self.memory.setdefault(subject, []).append(unapplied)
        return unapplied

    def remove_unapplied(self, unapplied: Unapplied) -> None:
        """Take a record out of those that are not applied."""
        if self.unapplied.pop(unapplied.coordinates, None) is None:
            self.released.add(unapplied.coordinates)

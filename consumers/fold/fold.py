"""The fold: records of the log in, rows and stream states out.

Pure but for the streams it is given; the same live and in a rebuild.

One record is applied, ignored, held or dropped; nothing else can happen to it. What a stream holds
never touches another stream.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from consumers.fold.held import Coordinates, Held, HeldAs, Kind
from consumers.fold.operator_drops import Drops
from consumers.fold.projectors.projector import EventContext, Operation, UnappliableError
from consumers.fold.projectors.registry import HOMES, PROJECTORS
from consumers.fold.rows import Rows
from consumers.fold.streams import Stream, jump_over_gap, new_stream
from consumers.fold.transition import StatusTransition, find_transition, history, remember
from consumers.log.reader import LogRecord
from schemas.event import Envelope, Event
from schemas.status import IllegalTransitionError
from schemas.streams import RecordOrder
from schemas.wire import (
    InvalidPayloadError,
    UnknownSchemaError,
    UnreadableError,
    read_envelope,
    read_payload,
)

Probe = Callable[[Sequence[Operation]], None]
"""Writes one event's operations at once, and raises UnappliableError when the database refuses
them."""


class DatabaseRefusedError(UnappliableError):
    """The database refuses an event's rows (a constraint, a number out of range)."""


@dataclass(slots=True)
class ParsedRecord:
    """A record with what its envelope says."""

    record: LogRecord
    stream: str | None
    """None: neither value nor key names one."""
    envelope: Envelope | None
    problem: str
    """Why there is no envelope."""


def parse_record(record: LogRecord) -> ParsedRecord:
    """The envelope, checked against the key.

    The key alone names the stream of a value that cannot be read.
    """
    try:
        envelope = read_envelope(record.value)
        _check_subject(envelope.subject)
    except (UnreadableError, ValueError) as error:
        return ParsedRecord(record, _stream_of_key(record.key), None, str(error))
    if record.key is not None and record.key != envelope.subject:
        problem = f"expected the key to be the subject {envelope.subject!r}, found {record.key!r}"
        return ParsedRecord(record, _stream_of_key(record.key), None, problem)
    return ParsedRecord(record, envelope.subject, envelope, "")


@lru_cache(maxsize=50_000)
def _check_subject(subject: str) -> None:
    """ValueError when it is no stream of ours.

    Remembered, as a stream's subject comes with each of its events.
    """
    new_stream(subject)


def _stream_of_key(key: str | None) -> str | None:
    if key is None:
        return None
    try:
        return new_stream(key).subject
    except ValueError:
        return None


class ReplayFilter(NamedTuple):
    """Which records a replay treats otherwise than the live projection would."""

    hold: frozenset[tuple[str, int, int]] = frozenset()
    """(topic, partition, offset) of records that are parked whatever this code could do with them.
    """
    wanted: Callable[[ParsedRecord], bool] | None = None
    """Which records count at all; None: every one."""


EVERYTHING = ReplayFilter()


@dataclass(slots=True)
class PartitionProgress:
    """What became of one partition's records."""

    next_offset: int
    appended_at: object
    num_events: int = 0
    num_duplicates: int = 0


@dataclass(slots=True)
class FoldedBatch:
    """Everything that one transaction writes."""

    rows: Rows = field(default_factory=Rows)
    streams: dict[str, Stream] = field(default_factory=dict)
    """The streams that changed."""
    held: dict[Coordinates, Held] = field(default_factory=dict)
    """Records that are held from now on."""
    released: set[Coordinates] = field(default_factory=set)
    """Held records that are applied, or known as duplicates, now."""
    partitions: dict[tuple[str, int], PartitionProgress] = field(default_factory=dict)
    num_events: int = 0


class Fold:
    """Folds one batch. `streams` must know every stream of its records that is stored.

    It is changed in place.

    With `probe` every event's operations are handed over one by one instead of being collected.
    """

    def __init__(
        self,
        streams: dict[str, Stream],
        drops: Drops,
        log_id: str,
        *,
        probe: Probe | None = None,
        replay_filter: ReplayFilter = EVERYTHING,
    ) -> None:
        self._streams = streams
        self._drops = drops
        self._log_id = log_id
        self._probe = probe
        self._replay_filter = replay_filter
        self.batch = FoldedBatch()

    def take_all(self, parsed_records: Iterable[ParsedRecord]) -> FoldedBatch:
        """Every record of a poll, each partition in order."""
        for parsed in parsed_records:
            self.take(parsed)
        return self.batch

    def take(self, parsed: ParsedRecord) -> None:
        """One record of the log."""
        progress = self._pass_over(parsed.record)
        if self._replay_filter.wanted is None or self._replay_filter.wanted(parsed):
            self.consider(parsed, progress)

    def _pass_over(self, record: LogRecord) -> PartitionProgress:
        """Move the position past a record."""
        place = (record.topic, record.partition)
        progress = self.batch.partitions.get(place)
        if progress is None:
            progress = self.batch.partitions[place] = PartitionProgress(0, None)
        progress.next_offset = record.offset + 1
        progress.appended_at = record.appended_at
        return progress

    def consider(self, parsed: ParsedRecord, progress: PartitionProgress) -> None:
        """Apply, ignore, hold or drop a record; also one that was parked and is tried again."""
        if parsed.stream is None:
            if self._drops.scope(None, parsed.record.value) is None:
                self._hold(parsed, "parked", "unreadable", parsed.problem)
            return
        stream = self._stream(parsed.stream)
        self._consider(stream, parsed, progress)
        self.release(stream, progress)

    def retry(self, held: Held, progress: PartitionProgress) -> None:
        """A record that was parked, once more; its stream must not be parked any longer."""
        self._unhold(held)
        self.consider(parse_record(held.record), progress)

    def _stream(self, subject: str) -> Stream:
        stream = self._streams.get(subject)
        if stream is None:
            stream = self._streams[subject] = new_stream(subject)
        self.batch.streams[subject] = stream
        return stream

    def _consider(self, stream: Stream, parsed: ParsedRecord, progress: PartitionProgress) -> None:
        if stream.abandoned:
            return
        if stream.parked_since is not None:
            self._hold(parsed, "parked", "behind", "parked behind an earlier record of its stream")
            return
        envelope = parsed.envelope
        if envelope is None:
            drop = self._drops.scope(stream.subject, parsed.record.value)
            if drop == "rest":
                self._abandon(stream)
            elif drop is None:
                self._park(stream, parsed, "unreadable", parsed.problem)
            return
        self._judge(stream, parsed, envelope, progress)

    def _judge(
        self, stream: Stream, parsed: ParsedRecord, envelope: Envelope, progress: PartitionProgress
    ) -> None:
        match stream.position.classify(envelope):
            case RecordOrder.NEXT:
                drop = self._drops.scope(stream.subject, parsed.record.value)
                if drop == "rest":
                    self._abandon(stream)
                elif drop == "record":
                    stream.position.advance(envelope)
                elif parsed.record[:3] in self._replay_filter.hold:
                    self._park(
                        stream,
                        parsed,
                        "unknown_schema",
                        "parked in the tables that this is compared with",
                    )
                else:
                    self._apply(stream, parsed, envelope, progress)
            case RecordOrder.DUPLICATE:
                progress.num_duplicates += 1
            case RecordOrder.GAP:
                reason = f"waits for what follows {stream.position.point}"
                stream.waiting.append(self._hold(parsed, "waiting", "gap", reason))
            case RecordOrder.FENCED:
                reason = (
                    f"epoch {envelope.epoch} of {envelope.source} is not the stream's at"
                    f" {stream.position.point}"
                )
                stream.position.refuse(envelope)
                self._hold(parsed, "refused", "fenced", reason)

    def _apply(
        self, stream: Stream, parsed: ParsedRecord, envelope: Envelope, progress: PartitionProgress
    ) -> None:
        try:
            event = Event(envelope, read_payload(envelope))
            check_home(stream, event)
            transition = find_transition(stream, event)
            operations = project(stream, event, transition)
            if self._probe is None:
                self.batch.rows.add(operations)
            else:
                self._probe(operations)
        except UnknownSchemaError as error:
            self._park(stream, parsed, "unknown_schema", str(error))
        except DatabaseRefusedError as error:
            self._park(stream, parsed, "database", str(error))
        except (InvalidPayloadError, UnappliableError) as error:
            self._park(stream, parsed, "invalid", str(error))
        except IllegalTransitionError as error:
            self._park(stream, parsed, "transition", str(error))
        else:
            if transition is not None:
                remember(stream, transition)
            stream.position.advance(envelope)
            stream.last_event_at = envelope.time
            progress.num_events += 1
            self.batch.num_events += 1

    def release(self, stream: Stream, progress: PartitionProgress) -> None:
        """Apply what waited, as far as the gap has filled or was given up."""
        self.batch.streams[stream.subject] = stream
        progressed = bool(stream.waiting)
        while progressed and stream.parked_since is None:
            progressed = False
            for held in sorted(stream.waiting, key=_stream_order):
                envelope = held.envelope
                assert envelope is not None  # noqa: S101  # only a readable record can wait
                if self._drops.gives_up_gap(
                    stream.subject, held.record.value, stream.position.point
                ):
                    jump_over_gap(stream.position, envelope)
                if stream.position.classify(envelope) is RecordOrder.GAP:
                    continue
                stream.waiting.remove(held)
                self._unhold(held)
                self._consider(
                    stream, ParsedRecord(held.record, stream.subject, envelope, ""), progress
                )
                progressed = True
                break

    def _abandon(self, stream: Stream) -> None:
        stream.abandoned = True
        for held in stream.waiting:
            self._unhold(held)
        stream.waiting.clear()

    def _park(self, stream: Stream, parsed: ParsedRecord, kind: Kind, reason: str) -> None:
        held = self._hold(parsed, "parked", kind, reason)
        stream.parked_since = held.since

    def _hold(self, parsed: ParsedRecord, held_as: HeldAs, kind: Kind, reason: str) -> Held:
        held = Held(
            self._log_id, parsed.record, held_as, kind, reason, parsed.stream, parsed.envelope
        )
        self.batch.held[held.coordinates] = held
        return held

    def _unhold(self, held: Held) -> None:
        if self.batch.held.pop(held.coordinates, None) is None:
            self.batch.released.add(held.coordinates)


def _stream_order(held: Held) -> tuple[int, int, int]:
    assert held.envelope is not None  # noqa: S101  # only a readable record can wait
    return held.envelope.epoch, held.envelope.sequence, held.record.offset


def check_home(stream: Stream, event: Event) -> None:
    """UnappliableError for a fact that no stream of this kind may say."""
    homes = HOMES[type(event.payload)]
    if stream.subject.partition("/")[0] not in homes:
        message = (
            f"expected {event.envelope.type} in a stream of {' or '.join(sorted(homes))}, found it"
            f" in {stream.subject}"
        )
        raise UnappliableError(message)


def project(stream: Stream, event: Event, transition: StatusTransition | None) -> list[Operation]:
    """One event's changes of rows, its entity's history included."""
    envelope, payload = event
    time = envelope.time.isoformat(timespec="microseconds")
    context = EventContext(
        envelope,
        stream.owner,
        time,
        envelope.training_id,
        None if transition is None else transition.entity,
        "" if transition is None else transition.id,
        transition is not None and transition.changes_status,
        transition is not None and transition.starts,
    )
    operations = list(PROJECTORS[type(payload)].project(payload, context))
    if transition is not None and transition.changes_status:
        operations.append(history(event, transition, time))
    return operations


def stored_subjects(
    parsed_records: Iterable[ParsedRecord], known: Mapping[str, Stream]
) -> list[str]:
    """The streams of these records that must be looked up before they are folded."""
    return sorted(
        {
            parsed.stream
            for parsed in parsed_records
            if parsed.stream is not None and parsed.stream not in known
        }
    )

"""A stream read back from the log: its position, the status of its entities and its events.

Uses the same ordering rules as the projector (`schemas.streams`), so that a resuming writer and the
tables agree on which records count.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing, suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar
from uuid import UUID

from producer.errors import MismatchError
from producer.log.kafka_contact import open_kafka
from producer.log.local import LocalRecords
from producer.log.writer import StreamSource, TopicPartition
from schemas.catalogue import entity_of, topic_of
from schemas.decision import Drops, GapDropped, decide, value_hash
from schemas.event import DECISION_TYPES, Envelope, Event, StreamPoint
from schemas.installation import Installation
from schemas.streams import RecordOrder, StreamPosition
from schemas.waiting import WaitingRecords
from schemas.wire import (
    InvalidPayloadError,
    UnknownSchemaError,
    UnreadableError,
    read_envelope,
    read_payload,
)

UNREAD = (UnreadableError, UnknownSchemaError, InvalidPayloadError)
Dropped = Mapping[str, Drops]
"""Stream -> what operators dropped of it."""


class Decided(Protocol):
    """Something read from the log, with operators' decisions in it."""

    @property
    def decisions(self) -> Dropped:
        """Those met, of the streams about which there are any."""
        ...


History = TypeVar("History", bound=Decided)


@dataclass(slots=True)
class StreamHistory:
    """The records of one stream that count, in order, without duplicates and fenced records."""

    subject: str
    position: StreamPosition = field(default_factory=StreamPosition)
    statuses: dict[tuple[str, UUID], str] = field(default_factory=dict)
    """Maps (table, id) to the entity's status."""
    events: list[Event] = field(default_factory=list)
    waiting: WaitingRecords[Envelope] = field(default_factory=WaitingRecords)
    """Records after a gap."""
    drops: Drops = field(default_factory=dict, compare=False)
    """What operators gave up, by the decisions that an earlier reading met. The tables leave it
    out, and so does this history. A decision comes after the records that it is about."""
    decisions: Drops = field(default_factory=dict, compare=False)
    """What operators gave up, by the decisions that this reading met."""
    is_dropped: bool = False
    """Whether an operator gave up the rest of the stream, so that nothing appended to it counts."""
    is_position_only: bool = False
    """Whether only the position is read. Payloads are then not parsed, and a record that is not an
    event of the stream does not move the position."""
    _left_out: set[str] = field(default_factory=set, compare=False)
    """Hashes of the dropped records that this reading met."""
    _waiting_values: dict[str, bytes] = field(default_factory=dict, compare=False)
    """Values by event ID, while something is given up."""

    def copy(self) -> "StreamHistory":
        """A copy that reads on without changing the original. The events are shared."""
        return replace(
            self,
            position=deepcopy(self.position),
            statuses=dict(self.statuses),
            events=list(self.events),
            waiting=deepcopy(self.waiting),
            decisions=dict(self.decisions),
            _left_out=set(self._left_out),
            _waiting_values=dict(self._waiting_values),
        )

    def copy_position(self) -> "StreamHistory":
        """A copy that reads on for its position alone."""
        return replace(self.copy(), is_position_only=True, events=[])

    @property
    def exists(self) -> bool:
        """Whether the log has any record of the stream that counts."""
        return self.position.epoch > 0

    def read_value(self, value: bytes) -> None:
        """Read any record with the stream's key, as `read` does.

        Raises UnreadableError for a record that is not an event of the stream, unless it was given
        up.
        """
        try:
            envelope = read_envelope(value)
            if envelope.subject != self.subject:
                message = f"its event is one of {envelope.subject}"
                raise UnreadableError(message)  # noqa: TRY301  # as the tables park both
        except UnreadableError:
            is_left_out = self.is_position_only or self.is_dropped
            if not is_left_out and not self._leaves_out(value):
                raise
            return
        self.read(envelope, value)

    def read(self, envelope: Envelope, value: bytes = b"") -> None:
        """Read the stream's next record in log order; `value` holds its bytes.

        Raises InvalidPayloadError, UnknownSchemaError.
        """
        if envelope.is_decision:
            # It cannot change a position alone, nor what is read of a stream that is given up.
            with suppress(*(UNREAD if self.is_position_only or self.is_dropped else ())):
                if not self._leaves_out(value):
                    self._obey(envelope)
        else:
            self._read(envelope, value)
        while self.waiting and not self.is_dropped:
            released = self.waiting.pop_released(self.position)
            if released is None:
                return
            self._read(released, self._waiting_values.pop(released.id, b""))

    def skim(self, value: bytes) -> None:
        """Behind a record that cannot be read: note decisions and nothing else."""
        if DECISION_TYPES.encode() in value and value_hash(value) not in self.drops:
            with suppress(*UNREAD):
                envelope = read_envelope(value)
                if envelope.is_decision and envelope.subject == self.subject:
                    decide(self.decisions, read_payload(envelope))

    def _obey(self, envelope: Envelope) -> None:
        """Skip a gap that an operator dropped; note what else one dropped for the next reading."""
        payload = read_payload(envelope)
        decide(self.decisions, payload)
        if isinstance(payload, GapDropped) and self.waiting and not self._was_held_up:
            before = StreamPoint(payload.from_epoch, payload.from_sequence)
            if self.position.point == before:
                self.position.skip_gap(min(self.waiting, key=lambda waiting: waiting.point))

    @property
    def _was_held_up(self) -> bool:
        """Whether the stream was parked or given up when the tables read this far.

        A record that this reading leaves out parked the stream until the decision to drop it.
        """
        undecided = (self.decisions.get(value) != "record" for value in self._left_out)
        return self.is_dropped or any(undecided)

    def _next(self, envelope: Envelope, value: bytes) -> None:
        if self._leaves_out(value):
            if not self.is_dropped:
                self.position.advance(envelope)
        else:
            self._apply(envelope)

    def _read(self, envelope: Envelope, value: bytes) -> None:
        if self.is_dropped:
            return
        match self.position.classify(envelope):
            case RecordOrder.NEXT:
                self._next(envelope, value)
            case RecordOrder.GAP:
                self.waiting.add(envelope, envelope, self.position)
                if self.drops:
                    self._waiting_values[envelope.id] = value
            case RecordOrder.DUPLICATE:
                pass
            case RecordOrder.FENCED:
                if self.position.refuse(envelope):
                    self.waiting.fence(envelope.epoch, envelope.source)

    def _leaves_out(self, value: bytes) -> bool:
        """Whether an operator dropped this record, or the stream from it on."""
        if not self.drops:
            return False
        hashed = value_hash(value)
        scope = self.drops.get(hashed)
        if scope is not None:
            self._left_out.add(hashed)
        if scope == "rest":
            self.is_dropped = True
            self.waiting = WaitingRecords()
        return scope is not None

    def _apply(self, envelope: Envelope) -> None:
        if self.is_position_only:
            self.position.advance(envelope)
            return
        payload = read_payload(envelope)
        self.position.advance(envelope)
        self.events.append(Event(envelope, payload))
        entity = entity_of(self.subject, payload)
        if entity is not None and payload.STATUS is not None:
            self.statuses[entity] = payload.STATUS


def read_streams_into(
    histories: Mapping[str, StreamHistory],
    log: StreamSource,
    since: Mapping[TopicPartition, int],
    *,
    topic_prefix: str,
) -> None:
    """Read these streams on from `since`, in one pass over each topic.

    `since` holds offsets at or before the first unread record; a missing partition means 0. Records
    that were read before are skipped as duplicates. Raises MismatchError for a record that this
    code cannot read, so that it cannot continue the stream.
    """
    failed: dict[str, Exception] = {}
    for topic in sorted({topic_of(subject, topic_prefix) for subject in histories}):
        keys = [subject for subject in histories if topic_of(subject, topic_prefix) == topic]
        for key, value in log.read_streams(topic, keys, since):
            if key not in keys:
                continue
            if key in failed:
                histories[key].skim(value)
                continue
            try:
                histories[key].read_value(value)
            except UNREAD as error:
                failed[key] = error
    for key, problem in failed.items():
        message = (
            f"{key} cannot be continued: one of its records cannot be read ({problem}). Continue"
            " with the cua-train version that wrote it, or give the record up (`cua-project parked"
            " list` names it, `cua-project parked drop` gives it up)"
        )
        raise MismatchError(message) from problem


def read_decided(new: Callable[[Dropped], History], read: Callable[[History], None]) -> History:
    """Fill a new history with `read`, again until it knows all operators' decisions in the log.

    Decisions are rare and come after the records that they are about. Raises MismatchError as
    `read` does.
    """
    dropped: Dropped = {}
    while True:
        history, problem = new(dropped), None
        try:
            read(history)
        except MismatchError as error:
            problem = error
        if history.decisions == dropped:
            if problem is not None:
                raise problem
            return history
        dropped = history.decisions


class _Streams(dict[str, StreamHistory]):
    """Several streams, by subject."""

    @property
    def decisions(self) -> Dropped:
        """Decisions about each stream that has any."""
        return {subject: one.decisions for subject, one in self.items() if one.decisions}


def read_histories(
    installation: Installation,
    log: StreamSource,
    subjects: Collection[str],
    since: Mapping[TopicPartition, int],
) -> dict[str, StreamHistory]:
    """Several streams in one pass; an empty history for a stream without records.

    Raises as `read_streams_into`.
    """

    def new(dropped: Dropped) -> _Streams:
        return _Streams(
            {
                subject: StreamHistory(subject, drops=dropped.get(subject, {}))
                for subject in subjects
            }
        )

    def read(streams: _Streams) -> None:
        read_streams_into(streams, log, since, topic_prefix=installation.topic_prefix)

    return read_decided(new, read)


def read_back(
    installation: Installation, subjects: Collection[str], *, timeout_s: float
) -> dict[str, StreamHistory]:
    """Several streams as others see them now; an empty history for a stream without records.

    For commands that write nothing, in a home that has a log. Creates no file, sends nothing and
    waits for no writer, so it works in a read-only home. Raises UnreachableError after `timeout_s`,
    LogBrokenError and MismatchError.
    """
    if installation.kafka_bootstrap_servers is None:
        records = LocalRecords(installation.local_log_path)
        return read_histories(installation, records, subjects, {})
    with closing(open_kafka(installation, timeout_s)) as log:
        return read_histories(installation, log, subjects, {})


def evaluation_streams(
    installation: Installation, training_id: UUID, *, timeout_s: float
) -> list[str]:
    """Subjects of the evaluations whose events name the training. Raises as `read_back` does.

    Kafka has no index, so there the whole topic is read.
    """
    if installation.kafka_bootstrap_servers is None:
        topic = installation.topic_prefix + "training"
        records = LocalRecords(installation.local_log_path)
        return _evaluations_in(records.read_training(topic, training_id, {}), training_id)
    with closing(open_kafka(installation, timeout_s)) as log:
        topic = installation.topic_prefix + "training"
        return _evaluations_in(log.read_topic(topic, {}), training_id)


def _evaluations_in(records: Iterable[tuple[str, bytes]], training_id: UUID) -> list[str]:
    needle = str(training_id).encode()
    found = dict.fromkeys(key for key, value in records if needle in value)
    return [key for key in found if key.startswith("evaluation/")]

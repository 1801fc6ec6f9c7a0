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
    """The records of one stream that count, in order; not duplicates and fenced ones."""

    subject: str
    position: StreamPosition = field(default_factory=StreamPosition)
    statuses: dict[tuple[str, UUID], str] = field(default_factory=dict)
    """(table, id) -> status."""
    events: list[Event] = field(default_factory=list)
    waiting: WaitingRecords[Envelope] = field(default_factory=WaitingRecords)
    """Records beyond a gap."""
    drops: Drops = field(default_factory=dict, compare=False)
    """What operators dropped, of the decisions known before: the tables leave it out, and so does
    this. A decision comes behind what it is about."""
    decisions: Drops = field(default_factory=dict, compare=False)
    """What operators dropped, of the decisions met."""
    is_abandoned: bool = False
    """An operator dropped the rest of the stream: nothing appended to it counts."""
    is_position_only: bool = False
    """Read for its position alone: payloads are not parsed, and a record that is no event of the
    stream moves no position."""
    _waiting_values: dict[UUID, bytes] = field(default_factory=dict, compare=False)
    """By event, while something is dropped."""

    def copy(self) -> "StreamHistory":
        """One that reads on without changing this one; the events are shared."""
        return replace(
            self,
            position=deepcopy(self.position),
            statuses=dict(self.statuses),
            events=list(self.events),
            waiting=deepcopy(self.waiting),
            decisions=dict(self.decisions),
            _waiting_values=dict(self._waiting_values),
        )

    def copy_position(self) -> "StreamHistory":
        """A copy that reads on for its position alone."""
        return replace(self.copy(), is_position_only=True, events=[])

    @property
    def exists(self) -> bool:
        """Whether the log has any record of it that counts."""
        return self.position.epoch > 0

    def read_value(self, value: bytes) -> None:
        """As `read`, of any record with the stream's key.

        UnreadableError for one that is no event of the stream, unless it was given up.
        """
        try:
            envelope = read_envelope(value)
            if envelope.subject != self.subject:
                message = f"its event is one of {envelope.subject}"
                raise UnreadableError(message)  # noqa: TRY301  # as the tables park both
        except UnreadableError:
            is_left_out = self.is_position_only or self.is_abandoned
            if not is_left_out and not self._is_dropped(value):
                raise
            return
        self.read(envelope, value)

    def read(self, envelope: Envelope, value: bytes = b"") -> None:
        """Take the stream's next record in log order; `value`: its bytes.

        Raises InvalidPayloadError, UnknownSchemaError.
        """
        if envelope.is_decision:
            # Of a position alone no record can take anything away.
            with suppress(*(UNREAD if self.is_position_only else ())):
                if not self._is_dropped(value):
                    self._obey(envelope)
        else:
            self._read(envelope, value)
        while self.waiting and not self.is_abandoned:
            released = self.waiting.pop_released(self.position)
            if released is None:
                return
            self._read(released, self._waiting_values.pop(released.id, b""))

    def skim(self, value: bytes) -> None:
        """Behind a record that cannot be read: note decisions and nothing else."""
        if DECISION_TYPES.encode() in value:
            with suppress(*UNREAD):
                envelope = read_envelope(value)
                if envelope.is_decision and envelope.subject == self.subject:
                    decide(self.decisions, read_payload(envelope))

    def _obey(self, envelope: Envelope) -> None:
        """Skip a gap that an operator dropped; note what else one dropped for the next reading."""
        payload = read_payload(envelope)
        decide(self.decisions, payload)
        if isinstance(payload, GapDropped) and self.waiting and not self.is_abandoned:
            before = StreamPoint(payload.from_epoch, payload.from_sequence)
            if self.position.point == before:
                self.position.skip_gap(min(self.waiting, key=lambda waiting: waiting.point))

    def _next(self, envelope: Envelope, value: bytes) -> None:
        if self._is_dropped(value):
            if not self.is_abandoned:
                self.position.advance(envelope)
        else:
            self._apply(envelope)

    def _read(self, envelope: Envelope, value: bytes) -> None:
        if self.is_abandoned:
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

    def _is_dropped(self, value: bytes) -> bool:
        """Whether an operator dropped this record, or the stream from it on."""
        scope = self.drops.get(value_hash(value)) if self.drops else None
        if scope == "rest":
            self.is_abandoned = True
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

    `since`: offsets at or before the first record not read yet; a missing partition means 0.
    Records read before are duplicates. Raises MismatchError when a record cannot be read: this code
    cannot continue that stream.
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
    """What `read` makes of a new history, read again once the decisions in the log are known.

    Operators' decisions are rare, and come behind the records that they are about. MismatchError
    of `read`.
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
        """Of the streams about which there are any."""
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
    """Several streams as others see them now; an empty history for one without records.

    Of a home that has a log, for commands that write nothing: makes no file, sends nothing, and
    waits for no writer, so it works in a home that may only be read. Raises UnreachableError after
    `timeout_s`, LogBrokenError and MismatchError.
    """
    if installation.kafka_bootstrap_servers is None:
        records = LocalRecords(installation.local_log_path)
        return read_histories(installation, records, subjects, {})
    with closing(open_kafka(installation, timeout_s)) as log:
        return read_histories(installation, log, subjects, {})


def evaluation_streams(
    installation: Installation, training_id: UUID, *, timeout_s: float
) -> list[str]:
    """Subjects of the evaluations whose events name the training. Raises as `read_back`.

    Kafka has no index: there the whole topic is read.
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

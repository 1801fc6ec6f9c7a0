"""A stream read back from the log: its position, the status of its entities and its events.

Uses the same ordering rules as the projector (`schemas.streams`), so that a resuming writer and the
tables agree on which records count.
"""

from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, field, replace
from uuid import UUID

from producer.errors import MismatchError
from producer.log.kafka_contact import open_kafka
from producer.log.local import LocalRecords
from producer.log.writer import StreamSource, TopicPartition
from schemas.catalogue import entity_of, topic_of
from schemas.event import Envelope, Event
from schemas.installation import Installation
from schemas.operator_drops import Drops, read_operator_drops, value_hash
from schemas.streams import RecordOrder, StreamPosition
from schemas.waiting import WaitingRecords
from schemas.wire import (
    InvalidPayloadError,
    UnknownSchemaError,
    UnreadableError,
    read_envelope,
    read_payload,
)


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
    drops: Drops = field(default_factory=Drops, compare=False)
    """Records that operators gave up. The tables leave them out, and so does this history."""
    is_abandoned: bool = False
    """Whether an operator gave up the rest of the stream, so that nothing appended to it counts."""
    is_position_only: bool = False
    """Whether only the position is read. Payloads are then not parsed, and a record that is not an
    event of the stream does not move the position."""
    _waiting_values: dict[tuple[int, int, str], bytes] = field(default_factory=dict, compare=False)

    def copy(self) -> "StreamHistory":
        """A copy that reads on without changing the original. The events are shared."""
        return replace(
            self,
            position=deepcopy(self.position),
            statuses=dict(self.statuses),
            events=list(self.events),
            waiting=deepcopy(self.waiting),
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
            is_left_out = self.is_position_only or self.is_abandoned
            if not is_left_out and not self._is_dropped(value):
                raise
            return
        self.read(envelope, value)

    def read(self, envelope: Envelope, value: bytes = b"") -> None:
        """Read the stream's next record in log order; `value` holds its bytes.

        Raises InvalidPayloadError, UnknownSchemaError.
        """
        self._read(envelope, value)
        while self.waiting and not self.is_abandoned:
            released = self.waiting.pop_released(self.position) or self._after_given_up_gap()
            if released is None:
                return
            self._read(released, self._waiting_values.get(_place(released), b""))

    def _next(self, envelope: Envelope, value: bytes) -> None:
        if self._is_dropped(value):
            if not self.is_abandoned:
                self.position.advance(envelope)
        elif not self._is_in_given_up_gap(value):
            self._apply(envelope)

    def _is_in_given_up_gap(self, value: bytes) -> bool:
        """Whether the record is in a gap that an operator gave up and that ends at another record.

        The tables leave it out too.
        """
        values = self.drops.after_gap(self.subject, self.position.point)
        return bool(values) and value_hash(value) not in values

    def _read(self, envelope: Envelope, value: bytes) -> None:
        if self.is_abandoned:
            return
        match self.position.classify(envelope):
            case RecordOrder.NEXT:
                self._next(envelope, value)
            case RecordOrder.GAP:
                self.waiting.add(envelope, envelope, self.position)
                if self.drops:
                    self._waiting_values[_place(envelope)] = value
            case RecordOrder.DUPLICATE:
                pass
            case RecordOrder.FENCED:
                if self.position.refuse(envelope):
                    self.waiting.fence(envelope.epoch, envelope.source)

    def _is_dropped(self, value: bytes) -> bool:
        """Whether an operator gave up this record, or the stream from it on."""
        scope = self.drops.scope(self.subject, value)
        if scope == "rest":
            self.is_abandoned = True
            self.waiting = WaitingRecords()
        return scope is not None

    def _after_given_up_gap(self) -> Envelope | None:
        """The waiting record after a gap that an operator gave up; the position skips the gap."""
        values = self.drops.after_gap(self.subject, self.position.point)
        if values:
            for number, envelope in self.waiting.numbered():
                if value_hash(self._waiting_values.get(_place(envelope), b"")) in values:
                    self.position.skip_gap(envelope)
                    return self.waiting.remove(number)
        return None

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


def _place(envelope: Envelope) -> tuple[int, int, str]:
    return envelope.epoch, envelope.sequence, envelope.source


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
    for topic in sorted({topic_of(subject, topic_prefix) for subject in histories}):
        keys = [subject for subject in histories if topic_of(subject, topic_prefix) == topic]
        for key, value in log.read_streams(topic, keys, since):
            if key not in keys:
                continue
            try:
                histories[key].read_value(value)
            except (UnreadableError, UnknownSchemaError, InvalidPayloadError) as error:
                message = (
                    f"{key} cannot be continued: one of its records cannot be read ({error})."
                    " Continue with the cua-train version that wrote it, or give the record up"
                    " (`cua-project parked list` names it, `cua-project parked drop` gives it up)"
                )
                raise MismatchError(message) from error


def known_drops(installation: Installation) -> Drops:
    """What operators gave up in this home with `cua-project parked drop`. Raises MismatchError."""
    path = installation.operator_drops_path
    try:
        return read_operator_drops(path)
    except (ValueError, OSError) as error:
        message = f"what operators gave up cannot be read from {path}: {error}"
        raise MismatchError(message) from error


def read_histories(
    installation: Installation,
    log: StreamSource,
    subjects: Collection[str],
    since: Mapping[TopicPartition, int],
) -> dict[str, StreamHistory]:
    """Several streams in one pass; an empty history for a stream without records.

    Raises as `read_streams_into`.
    """
    drops = known_drops(installation)
    histories = {subject: StreamHistory(subject, drops=drops) for subject in subjects}
    read_streams_into(histories, log, since, topic_prefix=installation.topic_prefix)
    return histories


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

"""A stream read back from the log: its position, the status of its entities and its events.

Uses the same ordering rules as the projector (`schemas.streams`), so that a resuming writer and the
tables agree on which records count.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from producer.errors import MismatchError
from producer.log.writer import LogWriter, TopicPartition
from schemas.catalogue import entity_of, topic_of
from schemas.event import Envelope, Event
from schemas.streams import RecordOrder, StreamPosition, first_released
from schemas.wire import (
    InvalidPayloadError,
    UnknownSchemaError,
    UnreadableError,
    read_envelope,
    read_payload,
)


@dataclass(slots=True)
class StreamHistory:
    """The records of one stream that count, in order; not duplicates and fenced ones."""

    subject: str
    position: StreamPosition = field(default_factory=StreamPosition)
    statuses: dict[tuple[str, UUID], str] = field(default_factory=dict)
    """(table, id) -> status."""
    events: list[Event] = field(default_factory=list)
    waiting: list[Envelope] = field(default_factory=list)
    """Records beyond a gap."""

    def copy(self) -> "StreamHistory":
        """One that reads on without changing this one; the events are shared."""
        return StreamHistory(
            self.subject,
            replace(
                self.position, ends=dict(self.position.ends), refused=set(self.position.refused)
            ),
            dict(self.statuses),
            list(self.events),
            list(self.waiting),
        )

    @property
    def exists(self) -> bool:
        """Whether the log has any record of it that counts."""
        return self.position.epoch > 0

    def read(self, envelope: Envelope) -> None:
        """Take the stream's next record in log order.

        Raises InvalidPayloadError, UnknownSchemaError.
        """
        self._read(envelope)
        while self.waiting:
            released = first_released(self.position, self.waiting, lambda waiting: waiting)
            if released is None:
                return
            self.waiting.remove(released)
            self._read(released)

    def _read(self, envelope: Envelope) -> None:
        match self.position.classify(envelope):
            case RecordOrder.NEXT:
                self._apply(envelope)
            case RecordOrder.GAP:
                self.waiting.append(envelope)
            case RecordOrder.DUPLICATE:
                pass
            case RecordOrder.FENCED:
                self.position.refuse(envelope)

    def _apply(self, envelope: Envelope) -> None:
        payload = read_payload(envelope)
        self.position.advance(envelope)
        self.events.append(Event(envelope, payload))
        entity = entity_of(self.subject, payload)
        if entity is not None and payload.STATUS is not None:
            self.statuses[entity] = payload.STATUS


def read_streams_into(
    histories: Mapping[str, StreamHistory],
    log: LogWriter,
    since: Mapping[TopicPartition, int],
    *,
    topic_prefix: str,
) -> None:
    """Read these streams on from `since`, in one pass over each topic.

    `since`: offsets at or before the first record not read yet; a missing partition means 0.
    Records read before are duplicates. Raises MismatchError when a record cannot be read: this code
    cannot continue that stream.
    """
    for topic in sorted({topic_of(subject, topic_prefix) for subject in histories}):
        keys = [subject for subject in histories if topic_of(subject, topic_prefix) == topic]
        _read_all(histories, keys, log.read_streams(topic, keys, since))


def _read_all(
    histories: Mapping[str, StreamHistory],
    keys: Collection[str],
    records: Iterable[tuple[str, bytes]],
) -> None:
    for key, value in records:
        if key not in keys:
            continue
        try:
            histories[key].read(read_envelope(value))
        except (UnreadableError, UnknownSchemaError, InvalidPayloadError) as error:
            message = (
                f"{key} cannot be continued: one of its records cannot be read ({error}). Continue"
                " with the cua-train version that wrote it"
            )
            raise MismatchError(message) from error

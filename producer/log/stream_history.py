"""A stream read back from the log: where it stands, the status of its entities, and what was said.

What a resuming writer goes by.

Judges every record by the same rule as every reader (`StreamPosition`), so that writer and tables
agree on what counts.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from producer.errors import MismatchError
from producer.log.writer import LogWriter, TopicPartition
from schemas.catalogue import entity_of, topic_of
from schemas.event import Envelope, Event
from schemas.streams import RecordOrder, StreamPosition
from schemas.wire import (
    InvalidPayloadError,
    UnknownSchemaError,
    UnreadableError,
    read_envelope,
    read_payload,
)


@dataclass(slots=True)
class StreamHistory:
    """What counts of one stream, in order.

    Duplicates, fenced records and what never found its predecessor are counted only.
    """

    subject: str
    position: StreamPosition = field(default_factory=StreamPosition)
    statuses: dict[tuple[str, UUID], str] = field(default_factory=dict)
    """(table, id) -> status."""
    events: list[Event] = field(default_factory=list)
    num_duplicates: int = 0
    num_fenced: int = 0
    waiting: list[Envelope] = field(default_factory=list)
    """Records beyond a gap."""

    @property
    def exists(self) -> bool:
        """Whether anything of it is in the log."""
        return self.position.epoch > 0

    def take(self, envelope: Envelope) -> None:
        """The stream's next record in the log's order."""
        verdict = self._judge(envelope)
        if verdict is RecordOrder.NEXT:
            self._release()
        elif verdict is RecordOrder.GAP:
            self.waiting.append(envelope)

    def _release(self) -> None:
        """What waited for the record just applied."""
        progress = True
        while progress and self.waiting:
            waiting, self.waiting = self.waiting, []
            progress = False
            for envelope in waiting:
                verdict = self._judge(envelope)
                if verdict is RecordOrder.GAP:
                    self.waiting.append(envelope)
                progress = progress or verdict is RecordOrder.NEXT

    def _judge(self, envelope: Envelope) -> RecordOrder:
        verdict = self.position.judge(envelope)
        if verdict is RecordOrder.NEXT:
            self._apply(envelope)
        elif verdict is RecordOrder.DUPLICATE:
            self.num_duplicates += 1
        elif verdict is RecordOrder.FENCED:
            self.position.refuse(envelope)
            self.num_fenced += 1
        return verdict

    def _apply(self, envelope: Envelope) -> None:
        payload = read_payload(envelope)
        self.position.advance(envelope)
        self.events.append(Event(envelope, payload))
        entity = entity_of(self.subject, payload)
        if entity is not None and payload.STATUS is not None:
            self.statuses[entity] = payload.STATUS


def read_back(
    log: LogWriter, subject: str, since: Mapping[TopicPartition, int], *, topic_prefix: str = "cua."
) -> StreamHistory:
    """One stream, whole, as it is in the log now.

    `since`: offsets that the stream's first record does not lie before (a manifest's lower bounds);
    places not named: from the beginning. MismatchError when a record cannot be read: the stream
    cannot be continued by this code.
    """
    return read_back_many(log, [subject], since, topic_prefix=topic_prefix)[subject]


def read_into(
    log: LogWriter,
    history: StreamHistory,
    since: Mapping[TopicPartition, int],
    *,
    topic_prefix: str = "cua.",
) -> None:
    """Go on with a history: what the log holds from `since` on. MismatchError as `read_back`."""
    topic = topic_of(history.subject, topic_prefix)
    _fold({history.subject: history}, log.read_streams(topic, [history.subject], since))


def read_back_many(
    log: LogWriter,
    subjects: Collection[str],
    since: Mapping[TopicPartition, int],
    *,
    topic_prefix: str = "cua.",
) -> dict[str, StreamHistory]:
    """Several streams in one pass over the partitions they lie in.

    One history each, empty where there is nothing.
    """
    histories = {subject: StreamHistory(subject) for subject in subjects}
    for topic in sorted({topic_of(subject, topic_prefix) for subject in histories}):
        keys = [subject for subject in histories if topic_of(subject, topic_prefix) == topic]
        _fold(histories, log.read_streams(topic, keys, since))
    return histories


def _fold(histories: Mapping[str, StreamHistory], records: Iterable[tuple[str, bytes]]) -> None:
    for key, value in records:
        try:
            histories[key].take(read_envelope(value))
        except (UnreadableError, UnknownSchemaError, InvalidPayloadError) as error:
            message = (
                f"the stream {key} cannot be continued: a record of it cannot be read ({error})."
                " Use the version that wrote it"
            )
            raise MismatchError(message) from error

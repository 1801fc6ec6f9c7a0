"""One stream as its writer sees it: epoch, next sequence number and status of its entities.

The only place on the producing side that tracks an entity's status.
"""

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from producer.emit.group_commit import GroupCommitBuffer
from producer.errors import EventTooLargeError, UsageError
from producer.log.stream_history import StreamHistory
from producer.log.writer import Record
from schemas.base import Payload
from schemas.bounds import OutOfBoundsError, check_key_texts, check_numbers
from schemas.catalogue import entity_of, stream_kind, stream_owner, topic_of
from schemas.event import StreamPoint
from schemas.ids import uuid7_text
from schemas.kafka_log import MAX_EVENT_BYTES
from schemas.status import IllegalTransitionError, has_reached, next_status
from schemas.streams import Epoch
from schemas.training import TrainingResumed
from schemas.wire import encode

RECORD_OVERHEAD_BYTES = 500
"""Memory of a buffered record besides its value; counts towards the buffer's limit."""

SMALL_BYTES = 65_536
"""Every topic accepts at least this much, so most events need no lookup of its limit."""

Entity = tuple[str, UUID]
"""(table, id) of an entity."""


class Acknowledgement:
    """A handle for one event, done once the event is on disk in the local log."""

    __slots__ = ("_buffer", "_number")

    def __init__(self, buffer: GroupCommitBuffer, number: int) -> None:
        self._buffer = buffer
        self._number = number

    @property
    def done(self) -> bool:
        """Whether the event is durable. Never blocks."""
        return self._buffer.is_done(self._number)

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until the event is durable.

        Raises LogBrokenError, or TimeoutError after `timeout_s`.
        """
        self._buffer.wait(self._number, timeout_s)


class EmitContext(NamedTuple):
    """State shared by all streams of one emitter."""

    buffer: GroupCommitBuffer
    clock: Callable[[], datetime]
    source: str
    """Source name of the writer: `//host/pid/start`."""
    topic_prefix: str
    on_close: Callable[["StreamWriter"], None]
    """Called with the buffer's lock held."""
    max_bytes: Callable[[str], int]
    """Returns the maximum size of a serialised event in a topic."""


class StreamWriter:
    """The only writer of one stream; created by `Emitter.stream`. Thread-safe.

    `emit` and `ensure` wait for no I/O, except for room while the emitter's buffer is full. If they
    raise, nothing is appended and no sequence number is used. `close` is idempotent.
    """

    def __init__(
        self,
        context: EmitContext,
        subject: str,
        *,
        training_id: UUID | None,
        history: StreamHistory | None,
    ) -> None:
        """With `history`, the stream as read back, the first event opens the following epoch."""
        self.subject = subject
        """Name of the stream: `rollout/<uuid>`."""
        is_training = training_id is None and stream_kind(subject) == "training"
        self.training_id = stream_owner(subject) if is_training else training_id
        """The training that the events belong to; None for an evaluation without a training."""
        self._training = "" if self.training_id is None else str(self.training_id)
        self._context = context
        self._topic = topic_of(subject, context.topic_prefix)
        self._epoch = Epoch(1, None) if history is None else history.position.next_epoch()
        self._sequence = 0
        self._statuses: dict[Entity, str] = {} if history is None else dict(history.statuses)
        self._is_closed = False

    @property
    def point(self) -> StreamPoint:
        """The last emitted event's position; before the first, the one that it will continue."""
        if self._sequence == 0:
            return self._epoch.continues or StreamPoint(0, 0)
        return StreamPoint(self._epoch.number, self._sequence)

    def status(self, entity: Entity) -> str | None:
        """Current status of an entity of this stream; None if it was never created."""
        return self._statuses.get(entity)

    def emit(self, payload: Payload) -> Acknowledgement:
        """Append an event.

        Raises IllegalTransitionError, EventTooLargeError if Kafka could never accept it,
        LogBrokenError after the log failed or the emitter was closed, ValueError on a closed
        stream, and UsageError for a name or number that the tables cannot store.
        """
        buffer = self._context.buffer
        buffer.check_process()
        with buffer.lock:
            buffer.wait_for_room()
            return self._append(payload)

    def ensure(self, payload: Payload) -> None:
        """Emit unless the entity has already reached that status. Used when continuing a stream.

        Skips an event that creates an existing entity or restates a past status; emits one that
        changes no status. Raises as `emit` does; a status that can no longer be reached raises
        IllegalTransitionError.
        """
        buffer = self._context.buffer
        buffer.check_process()
        with buffer.lock:
            buffer.wait_for_room()
            if not self._has_reached(payload):
                self._append(payload)

    def close(self) -> None:
        """Free the memory of a stream that has ended. `emit` raises ValueError from then on."""
        with self._context.buffer.lock:
            if not self._is_closed:
                self._is_closed = True
                self._statuses = {}
                self._context.on_close(self)

    def _append(self, payload: Payload) -> Acknowledgement:
        """The caller holds the buffer's lock, and the buffer has room."""
        if self._is_closed:
            message = f"{self.subject} was closed; an event after that would count as a duplicate"
            raise ValueError(message)
        buffer, clock, source, _, _, max_bytes = self._context
        _check_bounds(payload)
        transition = self._transition(payload)
        sequence = self._sequence + 1
        now = clock()
        value = encode(
            payload,
            id=uuid7_text(now),
            source=source,
            time=now,
            subject=self.subject,
            epoch=self._epoch.number,
            sequence=sequence,
            training_id=self.training_id,
            continues=self._epoch.continues if sequence == 1 else None,
        )
        if len(value) > SMALL_BYTES and len(value) > max_bytes(self._topic):
            raise _too_large(payload, self.subject, len(value), max_bytes(self._topic))
        self._sequence = sequence
        if transition is not None:
            entity, status = transition
            self._statuses[entity] = status
        record = Record(self._topic, self.subject, value, self._training)
        return Acknowledgement(buffer, buffer.put(record, len(value) + RECORD_OVERHEAD_BYTES))

    def _has_reached(self, payload: Payload) -> bool:
        entity = entity_of(self.subject, payload)
        current = None if entity is None else self._statuses.get(entity)
        if entity is None or current is None or payload.STATUS is None:
            return False
        return payload.CREATES or has_reached(entity[0], current, payload.STATUS)

    def _transition(self, payload: Payload) -> tuple[Entity, str] | None:
        """(entity, new status), or None if the status does not change.

        Raises IllegalTransitionError.
        """
        entity = entity_of(self.subject, payload)
        if entity is None:
            return None
        table, entity_id = entity
        current, status = self._statuses.get(entity), payload.STATUS
        if status is None:
            if current is None:
                message = (
                    f"{payload.TYPE} on {self.subject}: {table} {entity_id} was not created in this"
                    " stream"
                )
                raise IllegalTransitionError(message)
            return None
        resumes = isinstance(payload, TrainingResumed)
        try:
            changes = next_status(table, current, status, creates=payload.CREATES, resumes=resumes)
        except IllegalTransitionError as error:
            message = f"{payload.TYPE} on {self.subject}: {error}"
            raise IllegalTransitionError(message) from None
        return (entity, status) if changes else None


def _check_bounds(payload: Payload) -> None:
    """Raise UsageError for values that the tables cannot store.

    The projector would park a stream with such a value.
    """
    try:
        check_key_texts(payload)
        check_numbers(payload)
    except OutOfBoundsError as error:
        message = f"{payload.TYPE}: {error}"
        raise UsageError(message) from None


def _too_large(payload: Payload, subject: str, size: int, limit: int) -> EventTooLargeError:
    hint = "raise the topic's max.message.bytes, or put" if limit < MAX_EVENT_BYTES else "put"
    return EventTooLargeError(
        f"{payload.TYPE} on {subject} has {size:,} bytes, and the log takes events of up to"
        f" {limit:,}; {hint} large payloads into blobs (Emitter.put_blob) and name them by their"
        " refs. Nothing was appended"
    )

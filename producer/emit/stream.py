"""One stream as its writer sees it: epoch, next sequence number, and the status of its entities.

The only place that keeps an entity's status on the producing side.
"""

import os
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from producer.emit.group_commit import GroupCommitBuffer
from producer.log.stream_history import StreamHistory
from producer.log.writer import Record
from schemas.base import Payload
from schemas.catalogue import entity_of, stream_kind, stream_owner
from schemas.ids import uuid7_text
from schemas.status import IllegalTransitionError, has_reached, next_status
from schemas.streams import Epoch
from schemas.training import TrainingResumed
from schemas.wire import encode

RECORD_OVERHEAD_BYTES = 500
"""Of a buffered record beside its value (tuples, key, list slots); counts towards the bound."""

Entity = tuple[str, UUID]
"""(table, id)."""


class Acknowledgement:
    """The promise of one event: done once it is on disk in the local log."""

    __slots__ = ("_buffer", "_number")

    def __init__(self, buffer: GroupCommitBuffer, number: int) -> None:
        self._buffer = buffer
        self._number = number

    @property
    def done(self) -> bool:
        """Whether it is durable. Never waits."""
        return self._buffer.is_done(self._number)

    def wait(self, timeout_s: float | None = None) -> None:
        """Return once it is durable. LogBrokenError, or TimeoutError after `timeout_s`."""
        self._buffer.wait(self._number, timeout_s)


class EmitContext(NamedTuple):
    """What every stream of one emitter shares."""

    buffer: GroupCommitBuffer
    clock: Callable[[], datetime]
    source: str
    """The writer: `//host/pid/start`."""
    topic_prefix: str
    pid: int
    on_close: Callable[["StreamWriter"], None]


class StreamWriter:
    """The one writer of one stream; made by `Emitter.stream`. Thread-safe.

    `emit` waits for no I/O, except for room while the emitter's bounded buffer is full. `close` is
    idempotent.
    """

    __slots__ = (
        "_context",
        "_epoch",
        "_is_closed",
        "_sequence",
        "_statuses",
        "_topic",
        "subject",
        "training_id",
    )

    def __init__(
        self,
        context: EmitContext,
        subject: str,
        topic: str,
        *,
        training_id: UUID | None,
        history: StreamHistory | None,
    ) -> None:
        """`history`: the stream as read back; the first event then opens the epoch after it."""
        self.subject = subject
        """`rollout/<uuid>`."""
        is_training = training_id is None and stream_kind(subject) == "training"
        self.training_id = stream_owner(subject) if is_training else training_id
        """The training the events belong to; None for an evaluation of no training."""
        self._context = context
        self._topic = topic
        self._epoch = Epoch(1, None) if history is None else history.position.next_epoch()
        self._sequence = 0
        self._statuses: dict[Entity, str] = {} if history is None else dict(history.statuses)
        self._is_closed = False

    @property
    def num_emitted(self) -> int:
        """Events emitted through this writer."""
        return self._sequence

    @property
    def statuses(self) -> Mapping[Entity, str]:
        """(table, id) -> status of every entity of this stream."""
        return self._statuses

    def status(self, entity: Entity) -> str | None:
        """Current status of an entity of this stream; None when it was never created."""
        return self._statuses.get(entity)

    def emit(self, payload: Payload) -> Acknowledgement:
        """Append an event.

        Raises IllegalTransitionError (nothing is appended), LogBrokenError after the log failed or
        the emitter was closed, and ValueError on a closed stream.
        """
        buffer, clock, source, _, pid, _ = self._context
        with buffer.lock:
            buffer.wait_for_room()
            self._check_usable(pid)
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
            self._sequence = sequence
            if transition is not None:
                entity, status = transition
                self._statuses[entity] = status
            record = Record(self._topic, self.subject, value)
            number = buffer.put(record, len(value) + RECORD_OVERHEAD_BYTES)
        return Acknowledgement(buffer, number)

    def ensure(self, payload: Payload) -> None:
        """Emit, unless the entity has reached that status already. For continuing a stream.

        An event that creates an existing entity or restates a passed status is skipped; one that
        changes no status is emitted. IllegalTransitionError for a status that cannot be reached.
        """
        entity = entity_of(self.subject, payload)
        if entity is not None and payload.STATUS is not None:
            current = self._statuses.get(entity)
            if current is not None and (
                payload.CREATES or has_reached(entity[0], current, payload.STATUS)
            ):
                return
        self.emit(payload)

    def close(self) -> None:
        """Free the memory of a stream that has ended. `emit` raises ValueError from then on."""
        with self._context.buffer.lock:
            if not self._is_closed:
                self._is_closed = True
                self._statuses = {}
                self._context.on_close(self)

    def _check_usable(self, pid: int) -> None:
        if self._is_closed:
            message = f"{self.subject} was closed; an event after that would count as a duplicate"
            raise ValueError(message)
        if os.getpid() != pid:
            message = "this emitter belongs to the parent process; open one after the fork"
            raise RuntimeError(message)

    def _transition(self, payload: Payload) -> tuple[Entity, str] | None:
        """(entity, new status); None when the status does not change. IllegalTransitionError."""
        entity = entity_of(self.subject, payload)
        if entity is None:
            return None
        current, status = self._statuses.get(entity), payload.STATUS
        if status is None:
            if current is None:
                message = f"{payload.TYPE} on {self.subject}: {entity[0]} {entity[1]} was not created in this stream"
                raise IllegalTransitionError(message)
            return None
        is_resume = isinstance(payload, TrainingResumed)
        try:
            changes = next_status(
                entity[0], current, status, creates=payload.CREATES, resumes=is_resume
            )
        except IllegalTransitionError as error:
            message = f"{payload.TYPE} on {self.subject}: {error}"
            raise IllegalTransitionError(message) from None
        return (entity, status) if changes else None

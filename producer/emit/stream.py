"""One stream as its writer sees it.

The next epoch and sequence, and the status of every entity in it.

Pure state; the emitter's lock guards it. Knows nothing of bytes, time or the log.
"""

from typing import NamedTuple
from uuid import UUID

from schemas.base import Payload
from schemas.catalogue import entity_of
from schemas.event import StreamPoint
from schemas.status import IllegalTransitionError, next_status
from schemas.training import TrainingResumed

Entity = tuple[str, UUID]
"""(table, id)."""


class Change(NamedTuple):
    """What a fact does to an entity's status."""

    entity: Entity
    status: str


class OpenStream:
    """The writer's side of a stream.

    `check` changes nothing; `take` is called once the fact is serialised.
    """

    __slots__ = ("continues", "epoch", "sequence", "statuses", "subject", "topic")

    def __init__(
        self,
        subject: str,
        topic: str,
        *,
        epoch: int = 1,
        continues: StreamPoint | None = None,
        statuses: dict[Entity, str] | None = None,
    ) -> None:
        self.subject = subject
        self.topic = topic
        self.epoch = epoch
        self.sequence = 0
        """Of the last event taken; 0: the next one opens the epoch."""
        self.continues = continues
        """What the epoch's first event continues; None in epoch 1."""
        self.statuses = statuses if statuses is not None else {}

    def check(self, payload: Payload) -> Change | None:
        """The change that this fact makes, None for none.

        IllegalTransitionError when it may not be said here.
        """
        entity = entity_of(self.subject, payload)
        if entity is None:
            return None
        old = self.statuses.get(entity)
        if payload.STATUS is None:
            if old is None:
                message = (
                    f"{payload.TYPE} on {self.subject}: {entity[0]} {entity[1]} was never created"
                    " in this stream"
                )
                raise IllegalTransitionError(message)
            return None
        try:
            changes = next_status(
                entity[0],
                old,
                payload.STATUS,
                creates=payload.CREATES,
                resumes=isinstance(payload, TrainingResumed),
            )
        except IllegalTransitionError as error:
            message = f"{payload.TYPE} on {self.subject}: {error}"
            raise IllegalTransitionError(message) from None
        return Change(entity, payload.STATUS) if changes else None

    def take(self, change: Change | None) -> None:
        """The fact is on its way: the next one comes after it."""
        self.sequence += 1
        if change is not None:
            self.statuses[change.entity] = change.status

"""Says facts on one stream, skipping what an earlier process stated."""

from dataclasses import dataclass, field
from uuid import UUID

from producer.emit.emitter import Emitter
from schemas.base import Payload
from schemas.catalogue import entity_of
from schemas.event import Fact
from schemas.status import MACHINES


@dataclass(slots=True)
class StreamSpeaker:
    """Says facts on one stream, skipping transitions that an earlier process has already stated.

    Used from one thread.
    """

    subject: str
    training_id: UUID | None
    emitter: Emitter
    statuses: dict[tuple[str, UUID], str] = field(default_factory=dict)

    def say(self, payload: Payload) -> None:
        """Emit it; a transition into a state that the entity has already reached or passed is left out."""
        entity = entity_of(self.subject, payload)
        if entity is not None and payload.STATUS is not None:
            old = self.statuses.get(entity)
            if payload.CREATES and old is not None:
                return
            if old is not None and not MACHINES[entity[0]].allows(old, payload.STATUS):
                return
            self.statuses[entity] = payload.STATUS
        self.emitter.emit(Fact(self.subject, payload, self.training_id))

    def status_of(self, entity: str, owner: UUID) -> str | None:
        """Where an entity of this stream is."""
        return self.statuses.get((entity, owner))

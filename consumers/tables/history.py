"""The history of every entity's status: one row on creation and one on every change."""

from uuid import UUID

from sqlalchemy import UniqueConstraint
from sqlalchemy.orm import Mapped

from consumers.tables.base import Base, Document, Key, Number, OptReal, OptString, String, Time


class StatusHistory(Base):
    """One change. Ordered by (epoch, sequence) within an entity."""

    __tablename__ = "status_history"
    __table_args__ = (UniqueConstraint("entity_type", "entity_id", "epoch", "sequence"),)

    id: Mapped[Key]
    """Row id: a UUIDv5 of the natural key."""
    entity_type: Mapped[String]
    """training, step, group, rollout, environment, baseline, eval."""
    entity_id: Mapped[UUID]
    """Row id of the entity."""
    old_status: Mapped[OptString]
    """NULL on creation."""
    new_status: Mapped[String]
    """The status from this event on."""
    progress_percent: Mapped[OptReal]
    """From the event; NULL when it has none."""
    status_message: Mapped[OptString]
    """The event's message, error or reason; NULL: it has none."""
    metadata_json: Mapped[Document]
    """type: the event's type."""
    changed_at: Mapped[Time]
    """Time of the event."""
    created_at: Mapped[Time]
    """The same time as changed_at."""
    stream: Mapped[String]
    """The stream of the event."""
    epoch: Mapped[Number]
    """Epoch of the event."""
    sequence: Mapped[Number]
    """Sequence of the event in its epoch."""

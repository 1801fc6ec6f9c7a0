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
    entity_type: Mapped[String]
    """training, step, group, rollout, environment, baseline, eval."""
    entity_id: Mapped[UUID]
    old_status: Mapped[OptString]
    """NULL on creation."""
    new_status: Mapped[String]
    progress_percent: Mapped[OptReal]
    """From the event; NULL when it has none."""
    status_message: Mapped[OptString]
    metadata_json: Mapped[Document]
    """type: the event's type."""
    changed_at: Mapped[Time]
    created_at: Mapped[Time]
    stream: Mapped[String]
    epoch: Mapped[Number]
    sequence: Mapped[Number]

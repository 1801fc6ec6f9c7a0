"""What people say of a training: rows of the streams `annotation/<id>`."""

from uuid import UUID

from sqlalchemy import UniqueConstraint
from sqlalchemy.orm import Mapped

from consumers.tables.base import Base, Document, Key, Number, OptString, Time


class Annotation(Base):
    """One annotation of a training. The one with the highest (epoch, sequence) counts, whole."""

    __tablename__ = "annotation"
    __table_args__ = (UniqueConstraint("training_id", "epoch", "sequence"),)

    id: Mapped[Key]
    """Row id: a UUIDv5 of the natural key."""
    training_id: Mapped[UUID]
    """Row id of the training."""
    epoch: Mapped[Number]
    """Epoch of its event; with `sequence` it orders the annotations of a training."""
    sequence: Mapped[Number]
    """Sequence of its event, from 1 in each epoch."""
    display_name: Mapped[OptString]
    """Shown instead of run_name; NULL: run_name is shown."""
    tags: Mapped[Document]
    """All tags, a sorted array of text."""
    note: Mapped[OptString]
    """The note; NULL: there is none."""
    hidden: Mapped[bool]
    """Whether lists leave the training out."""
    created_at: Mapped[Time]
    """Time of its event."""

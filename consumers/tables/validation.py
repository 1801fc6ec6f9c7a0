"""Validators' results: from the rollout's own stream (rank 0) and from later scorings."""

from uuid import UUID

from sqlalchemy import Index, UniqueConstraint
from sqlalchemy.orm import Mapped

from consumers.tables.base import Base, Document, Key, Number, OptString, Real, String, Time


class Validation(Base):
    """One validator's result for one rollout. The highest rank counts, decided when reading."""

    __tablename__ = "validation"
    __table_args__ = (UniqueConstraint("stream", "validator_id"), Index(None, "rollout_id"))

    id: Mapped[Key]
    stream: Mapped[String]
    """`rollout/<id>` or `scoring/<id>`: who validated."""
    rollout_id: Mapped[UUID]
    """Row id of the rollout."""
    validator_id: Mapped[UUID]
    rank: Mapped[Number]
    validation_time: Mapped[Time]
    validation_query: Mapped[String]
    expected_result: Mapped[OptString]
    actual_result: Mapped[OptString]
    success: Mapped[bool]
    execution_time: Mapped[Real]
    """Seconds."""
    error_message: Mapped[OptString]
    details_json: Mapped[Document]
    created_at: Mapped[Time]

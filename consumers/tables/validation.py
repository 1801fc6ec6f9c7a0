"""Validators' results: from the rollout's own stream (rank 0) and from later scorings."""

from uuid import UUID

from sqlalchemy import Index, UniqueConstraint
from sqlalchemy.orm import Mapped

from consumers.tables.base import Base, Document, Key, Number, OptString, Real, String, Time


class Validation(Base):
    """One validator's result for one rollout. The highest rank counts, decided when reading."""

    __tablename__ = "validation"
    __table_args__ = (
        UniqueConstraint("stream", "validator_id"),
        Index(None, "rollout_id"),
        Index(None, "validator_id"),
    )

    id: Mapped[Key]
    """Row id: a UUIDv5 of the natural key."""
    stream: Mapped[String]
    """`rollout/<id>` or `scoring/<id>`: who validated."""
    rollout_id: Mapped[UUID]
    """Row id of the rollout."""
    validator_id: Mapped[UUID]
    """Row id of the validator."""
    rank: Mapped[Number]
    """If a rollout has several results, the one with the highest rank counts."""
    validation_time: Mapped[Time]
    """When it was judged."""
    validation_query: Mapped[String]
    """The device query, or `agent_report`, or `model_judge`; where the environment judges, its own
    word: `dbbench`, `rows`."""
    expected_result: Mapped[OptString]
    """The expected answer; NULL: there is no fixed answer."""
    actual_result: Mapped[OptString]
    """The device's answer; of a database the agent's answer, SQL or table hash. NULL: there was
    none."""
    success: Mapped[bool]
    """Whether the task is solved."""
    execution_time: Mapped[Real]
    """Duration in seconds."""
    error_message: Mapped[OptString]
    """Why it could not be judged; NULL: no error."""
    details_json: Mapped[Document]
    """Evidence: the commands that were run."""
    created_at: Mapped[Time]
    """Time of its event."""

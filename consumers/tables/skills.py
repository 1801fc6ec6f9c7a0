"""Success by skill after each evaluation of a training."""

from uuid import UUID

from sqlalchemy import Index, UniqueConstraint
from sqlalchemy.orm import Mapped

from consumers.tables.base import Base, Key, Number, OptNumber, OptString, Real, String, Time


class SkillSuccess(Base):
    """Success on the entries that need one skill, in one evaluation."""

    __tablename__ = "skill_success"
    __table_args__ = (
        UniqueConstraint("training_id", "evaluation_id", "skill"),
        Index(None, "evaluation_id"),
    )

    id: Mapped[Key]
    """Row id: a UUIDv5 of the natural key."""
    training_id: Mapped[UUID]
    """Row id of the training."""
    evaluation_id: Mapped[UUID]
    """Row id of the eval or baseline."""
    generation: Mapped[Number]
    """Generation of the training."""
    step: Mapped[Number]
    """Finished steps; 0: before the first."""
    stage: Mapped[OptNumber]
    """Continual learning: number of skills trained so far; NULL: skills are not trained in turn."""
    trained_skill: Mapped[OptString]
    """Continual learning: the skill trained last; NULL: none yet, or not in turn."""
    skill: Mapped[String]
    """Name of the skill; `all`: of every entry once."""
    num_sessions: Mapped[Number]
    """Scored sessions whose entry needs it."""
    num_correct: Mapped[Number]
    """How many of those were right."""
    success_rate: Mapped[Real]
    """num_correct / num_sessions, 0-1."""
    measured_at: Mapped[Time]
    """When the evaluation had ended."""
    created_at: Mapped[Time]
    """Time of its event."""

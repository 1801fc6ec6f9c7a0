"""Rollouts scored again, after their training: rows of the streams `scoring/<id>`."""

from uuid import UUID

from sqlalchemy import Index, UniqueConstraint
from sqlalchemy.orm import Mapped

from consumers.tables.base import (
    Base,
    Document,
    Key,
    Number,
    OptNumber,
    OptReal,
    OptString,
    OptTime,
    String,
    Time,
)


class Scoring(Base):
    """One time that a training's rollouts were scored again."""

    __tablename__ = "scoring"
    __table_args__ = (Index(None, "training_id"),)

    id: Mapped[Key]
    """Row id, in its stream's name."""
    training_id: Mapped[UUID]
    """Row id of the training."""
    reward_name: Mapped[String]
    """The reward: a name, or package.module:function."""
    judge: Mapped[OptString]
    """Who judged again; NULL: the recorded verdicts were used."""
    config_json: Mapped[Document]
    """Everything else that decides the scores."""
    total_rollouts: Mapped[Number]
    """Rollouts to score."""
    scored_rollouts: Mapped[OptNumber]
    """Rollouts that got a reward; NULL until the end."""
    failed_rollouts: Mapped[OptNumber]
    """Rollouts that could not be scored; NULL until the end."""
    reward_mean: Mapped[OptReal]
    """Mean of the new rewards; NULL: there is none yet."""
    success_rate: Mapped[OptReal]
    """0-1, of the rollouts with a verdict; NULL: there is none yet."""
    end_time: Mapped[OptTime]
    """When the last one was scored; NULL until then."""
    created_at: Mapped[Time]
    """Time of its first event."""
    updated_at: Mapped[Time]
    """Time of its last event."""


class Score(Base):
    """One rollout's new reward. `rollout.reward` is what its training used."""

    __tablename__ = "score"
    __table_args__ = (UniqueConstraint("scoring_id", "rollout_id"), Index(None, "rollout_id"))

    id: Mapped[Key]
    """Row id: a UUIDv5 of the natural key."""
    scoring_id: Mapped[UUID]
    """Row id of the scoring."""
    rollout_id: Mapped[UUID]
    """Row id of the rollout."""
    reward: Mapped[OptReal]
    """The new reward; NULL: it could not be scored."""
    success: Mapped[bool | None]
    """The verdict that the reward is of; NULL: there was none."""
    error_message: Mapped[OptString]
    """Why it could not be scored; NULL: it was."""
    details_json: Mapped[Document]
    """Evidence of a judge: its model, its reason, the hash of its prompt."""
    created_at: Mapped[Time]
    """Time of its event."""

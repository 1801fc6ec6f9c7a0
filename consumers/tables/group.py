"""Groups: rollouts of one task that are compared with each other.

Their facts stand in the stream of their source.
"""

from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import CheckConstraint, Index
from sqlalchemy.orm import Mapped, relationship

from consumers.tables.base import (
    UPDATED_IN_PLACE,
    Base,
    CommonColumns,
    EtaColumns,
    Key,
    Number,
    OptDocument,
    OptNumber,
    OptReal,
    OptString,
    String,
)

if TYPE_CHECKING:
    from consumers.tables.rollout import Rollout
    from consumers.tables.training import Step


class Group(CommonColumns, EtaColumns, Base):
    """One group of a step, an eval or a baseline.

    SQL reserves the word `group`: quote it, or read the view `rollout_group`.
    """

    __tablename__ = "group"
    __table_args__ = (
        CheckConstraint("num_nonnulls(step_id, eval_id, baseline_id) = 1", name="one_source"),
        Index(None, "training_id"),
        Index("uq_group_step_id_group_num", "step_id", "group_num", unique=True),
        Index("uq_group_eval_id_group_num", "eval_id", "group_num", unique=True),
        Index("uq_group_baseline_id_group_num", "baseline_id", "group_num", unique=True),
        UPDATED_IN_PLACE,
    )

    id: Mapped[Key]
    """Row id: a UUIDv5 of the natural key."""
    training_id: Mapped[UUID | None]
    """Row id of its training; NULL: an evaluation without one."""
    superseded: Mapped[bool]
    """Whether a newer generation repeats its step or evaluation."""
    source_type: Mapped[String]
    """step, eval or baseline: which of the next three is set."""
    step_id: Mapped[UUID | None]
    """Row id of its step; NULL: another source."""
    eval_id: Mapped[UUID | None]
    """Row id of its eval; NULL: another source."""
    baseline_id: Mapped[UUID | None]
    """Row id of its baseline; NULL: another source."""
    group_num: Mapped[Number]
    """Index in its source, from 0."""
    batch: Mapped[Number]
    """Batch of the task data, from 0."""
    num_rollouts: Mapped[Number]
    """Rollouts planned."""
    completed_rollouts: Mapped[Number]
    """Rollouts that ended with a reward."""
    reward_mean: Mapped[OptReal]
    """Mean reward of the completed rollouts; NULL: it has not finished."""
    reward_std: Mapped[OptReal]
    """Population standard deviation of their rewards."""
    success_count: Mapped[OptNumber]
    """Completed rollouts that solved the task."""
    dropped_reason: Mapped[OptString]
    """Why the completed group was left out of training; NULL: it was used."""
    rollout_ids: Mapped[OptDocument]
    """Row ids of the rollouts in its means."""
    metrics_json: Mapped[OptDocument]
    """Further measurements."""

    step: Mapped["Step | None"] = relationship(
        viewonly=True, primaryjoin="foreign(Group.step_id) == Step.id"
    )
    rollouts: Mapped[list["Rollout"]] = relationship(
        viewonly=True,
        primaryjoin="Group.id == foreign(Rollout.group_id)",
        order_by="Rollout.env_index, Rollout.attempt",
    )

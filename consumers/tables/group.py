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
    """One group of a step, an eval or a baseline. `group` is a reserved word of SQL: quote it."""

    __tablename__ = "group"
    __table_args__ = (
        CheckConstraint("num_nonnulls(step_id, eval_id, baseline_id) = 1", name="one_source"),
        Index("uq_group_step_id_group_num", "step_id", "group_num", unique=True),
        Index("uq_group_eval_id_group_num", "eval_id", "group_num", unique=True),
        Index("uq_group_baseline_id_group_num", "baseline_id", "group_num", unique=True),
        UPDATED_IN_PLACE,
    )

    id: Mapped[Key]
    training_id: Mapped[UUID | None]
    superseded: Mapped[bool]
    source_type: Mapped[String]
    """step, eval or baseline: which of the next three is set."""
    step_id: Mapped[UUID | None]
    eval_id: Mapped[UUID | None]
    baseline_id: Mapped[UUID | None]
    group_num: Mapped[Number]
    """From 0 within the source."""
    batch: Mapped[Number]
    num_rollouts: Mapped[Number]
    completed_rollouts: Mapped[Number]
    reward_mean: Mapped[OptReal]
    reward_std: Mapped[OptReal]
    success_count: Mapped[OptNumber]
    dropped_reason: Mapped[OptString]
    """Why the completed group was left out of training; NULL: it was used."""
    rollout_ids: Mapped[OptDocument]
    """Row ids of the rollouts in its means."""
    metrics_json: Mapped[OptDocument]

    step: Mapped["Step | None"] = relationship(
        viewonly=True, primaryjoin="foreign(Group.step_id) == Step.id"
    )
    rollouts: Mapped[list["Rollout"]] = relationship(
        viewonly=True,
        primaryjoin="Group.id == foreign(Rollout.group_id)",
        order_by="Rollout.env_index, Rollout.attempt",
    )

"""Evaluations of a policy: rows of the streams `evaluation/<id>`; by kind baseline or eval."""

from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import CheckConstraint, Index, text
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
    from consumers.tables.group import Group


class EvaluationColumns:
    """Columns that a baseline and an eval share."""

    training_id: Mapped[UUID | None]
    """NULL: the policy comes from no training."""
    generation: Mapped[OptNumber]
    step: Mapped[OptNumber]
    """Steps that the policy was trained for."""
    superseded: Mapped[bool]
    model_path: Mapped[OptString]
    current_task_index: Mapped[Number]
    total_tasks: Mapped[Number]
    """Episodes to run."""
    completed_tasks: Mapped[Number]
    eval_time: Mapped[OptReal]
    """Seconds."""
    success_rate: Mapped[OptReal]
    avg_reward: Mapped[OptReal]
    avg_turns: Mapped[OptReal]
    successful_tasks: Mapped[OptNumber]
    metrics_json: Mapped[OptDocument]


class Baseline(EvaluationColumns, CommonColumns, EtaColumns, Base):
    """The policy's success before its first step."""

    __tablename__ = "baseline"
    __table_args__ = (Index(None, "training_id"), UPDATED_IN_PLACE)

    id: Mapped[Key]

    groups: Mapped[list["Group"]] = relationship(
        viewonly=True,
        primaryjoin="Baseline.id == foreign(Group.baseline_id)",
        order_by="Group.group_num",
    )


class Eval(EvaluationColumns, CommonColumns, EtaColumns, Base):
    """The policy's success after a number of steps."""

    __tablename__ = "eval"
    __table_args__ = (
        Index(
            "uq_eval_scheduled",
            "training_id",
            "generation",
            "step",
            unique=True,
            postgresql_where=text("kind = 'scheduled'"),
        ),
        Index(None, "training_id"),
        CheckConstraint("kind IN ('scheduled', 'manual')", name="kind"),
        UPDATED_IN_PLACE,
    )

    id: Mapped[Key]
    kind: Mapped[String]

    groups: Mapped[list["Group"]] = relationship(
        viewonly=True, primaryjoin="Eval.id == foreign(Group.eval_id)", order_by="Group.group_num"
    )

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
    """Row id of the training that made the policy; NULL: no training made it."""
    generation: Mapped[OptNumber]
    """Generation of the training; NULL: no training."""
    step: Mapped[OptNumber]
    """Steps that the policy was trained for."""
    superseded: Mapped[bool]
    """Whether a newer generation repeats the steps that it evaluated."""
    model_path: Mapped[OptString]
    """Name of the policy: hub id or folder; NULL: not recorded."""
    current_task_index: Mapped[Number]
    """Index of the episode in progress, from 0."""
    total_tasks: Mapped[Number]
    """Episodes to run."""
    temperature: Mapped[OptReal]
    """Sampling temperature; 0 is greedy. NULL: not recorded."""
    split: Mapped[OptString]
    """held_out, training_tasks_unseen_seeds, training_tasks or mixed; NULL: no training, or not
    recorded."""
    num_tasks: Mapped[OptNumber]
    """Distinct tasks; NULL: not recorded."""
    task_source: Mapped[OptString]
    """Short name of the tasks; NULL: not recorded."""
    completed_tasks: Mapped[Number]
    """Episodes that have ended."""
    eval_time: Mapped[OptReal]
    """Duration in seconds."""
    success_rate: Mapped[OptReal]
    """Share of solved episodes among the judged ones, 0-1; NULL: it has not finished."""
    standard_error: Mapped[OptReal]
    """Standard error of success_rate, clustered by task; NULL: not finished, or not recorded."""
    avg_reward: Mapped[OptReal]
    """Mean reward of the judged episodes."""
    avg_turns: Mapped[OptReal]
    """Mean number of turns of the judged episodes."""
    successful_tasks: Mapped[OptNumber]
    """Episodes that solved their task."""
    metrics_json: Mapped[OptDocument]
    """Further measurements: standard_error, by_task."""


class Baseline(EvaluationColumns, CommonColumns, EtaColumns, Base):
    """The policy's success before its first step."""

    __tablename__ = "baseline"
    __table_args__ = (Index(None, "training_id"), UPDATED_IN_PLACE)

    id: Mapped[Key]
    """Row id: a UUIDv5 of the natural key."""

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
            "temperature",
            unique=True,
            postgresql_where=text("kind = 'scheduled'"),
        ),
        Index(None, "training_id"),
        CheckConstraint("kind IN ('scheduled', 'manual')", name="kind"),
        UPDATED_IN_PLACE,
    )

    id: Mapped[Key]
    """Row id: a UUIDv5 of the natural key."""
    kind: Mapped[String]
    """scheduled: by its training; manual: by `cua-train evaluate`."""

    groups: Mapped[list["Group"]] = relationship(
        viewonly=True, primaryjoin="Eval.id == foreign(Group.eval_id)", order_by="Group.group_num"
    )

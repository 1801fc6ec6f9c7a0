"""A rollout, one attempt of an agent at a task: the row of the stream `rollout/<id>`."""

from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import CheckConstraint, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, relationship

from consumers.tables.base import (
    UPDATED_IN_PLACE,
    Base,
    BigNumber,
    CommonColumns,
    Key,
    Number,
    OptBigNumber,
    OptDocument,
    OptNumber,
    OptReal,
    OptString,
    OptTime,
    Real,
    String,
)

if TYPE_CHECKING:
    from consumers.tables.environment import Environment
    from consumers.tables.group import Group
    from consumers.tables.task import Task
    from consumers.tables.turn import Turn
    from consumers.tables.validation import Validation


class Rollout(CommonColumns, Base):
    """One attempt; a retry is another row.

    Times that end in `_time` without `start_` or `end_` are seconds.
    """

    __tablename__ = "rollout"
    __table_args__ = (
        UniqueConstraint("rollout_id"),
        CheckConstraint("num_nonnulls(step_id, eval_id, baseline_id) = 1", name="one_source"),
        Index(None, "group_id"),
        Index(None, "step_id", postgresql_where="step_id IS NOT NULL"),
        Index(None, "eval_id", postgresql_where="eval_id IS NOT NULL"),
        Index(None, "baseline_id", postgresql_where="baseline_id IS NOT NULL"),
        Index(None, "task_id"),
        UPDATED_IN_PLACE,
    )

    id: Mapped[Key]
    training_id: Mapped[UUID | None]
    source_type: Mapped[String]
    step_id: Mapped[UUID | None]
    eval_id: Mapped[UUID | None]
    baseline_id: Mapped[UUID | None]
    group_id: Mapped[UUID]
    env_id: Mapped[UUID | None]
    """Row id of its environment; NULL before it requested one."""
    rollout_id: Mapped[String]
    """The text id: `demo/g0/step-3/group-2/env-1/attempt-0`."""
    batch: Mapped[Number]
    group_num: Mapped[Number]
    env_index: Mapped[Number]
    attempt: Mapped[Number]
    """From 0."""
    task_id: Mapped[UUID]
    """Row id of its task."""
    model_path: Mapped[OptString]
    policy_version: Mapped[Number]
    is_eval: Mapped[bool]
    seed: Mapped[BigNumber]
    current_turn: Mapped[Number]
    env_creation_time: Mapped[OptReal]
    agent_init_time: Mapped[OptReal]
    task_start_time: Mapped[OptTime]
    task_end_time: Mapped[OptTime]
    validation_time: Mapped[OptReal]
    rollout_time: Mapped[OptReal]
    task_completed: Mapped[bool | None]
    task_success: Mapped[bool | None]
    agent_reported_success: Mapped[bool | None]
    validation_passed: Mapped[bool | None]
    num_turns: Mapped[OptNumber]
    max_turns: Mapped[Number]
    reward: Mapped[OptReal]
    """NULL: not scored."""
    temperature: Mapped[Real]
    num_tokens: Mapped[OptBigNumber]
    """Completion tokens of all turns."""
    num_total_actions: Mapped[OptNumber]
    consecutive_repeated_actions: Mapped[OptNumber]
    parse_errors: Mapped[OptNumber]
    tool_name_errors: Mapped[OptNumber]
    tool_arg_errors: Mapped[OptNumber]
    runtime_errors: Mapped[OptNumber]
    ran_out_of_turns: Mapped[bool | None]
    attempted_completion: Mapped[bool | None]
    turn_first_success: Mapped[OptNumber]
    turn_task_completed: Mapped[OptNumber]
    error_type: Mapped[OptString]
    """The boundary that a failed attempt crossed: environment, environment_timeout, policy,
    validator."""
    errors: Mapped[OptDocument]
    summary_json: Mapped[OptDocument]
    trajectory_path: Mapped[OptString]
    """NULL: the turns are rows, and the log has everything else."""
    trajectory_data_json: Mapped[OptDocument]
    """NULL, as trajectory_path."""

    group: Mapped["Group | None"] = relationship(
        viewonly=True, primaryjoin="foreign(Rollout.group_id) == Group.id"
    )
    task: Mapped["Task | None"] = relationship(
        viewonly=True, primaryjoin="foreign(Rollout.task_id) == Task.id"
    )
    environment: Mapped["Environment | None"] = relationship(
        viewonly=True, primaryjoin="foreign(Rollout.env_id) == Environment.id", uselist=False
    )
    turns: Mapped[list["Turn"]] = relationship(
        viewonly=True, primaryjoin="Rollout.id == foreign(Turn.rollout_id)", order_by="Turn.turn"
    )
    validations: Mapped[list["Validation"]] = relationship(
        viewonly=True,
        primaryjoin="Rollout.id == foreign(Validation.rollout_id)",
        order_by="Validation.rank.desc()",
    )

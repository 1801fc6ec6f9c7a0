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
        Index(None, "training_id"),
        Index(None, "group_id"),
        Index(None, "step_id", postgresql_where="step_id IS NOT NULL"),
        Index(None, "eval_id", postgresql_where="eval_id IS NOT NULL"),
        Index(None, "baseline_id", postgresql_where="baseline_id IS NOT NULL"),
        Index(None, "task_id"),
        UPDATED_IN_PLACE,
    )

    id: Mapped[Key]
    """Row id: a UUIDv5 of the natural key."""
    training_id: Mapped[UUID | None]
    """Row id of its training; NULL: an evaluation without one."""
    source_type: Mapped[String]
    """step, eval or baseline: which of the next three is set."""
    step_id: Mapped[UUID | None]
    """Row id of its step; NULL: another source."""
    eval_id: Mapped[UUID | None]
    """Row id of its eval; NULL: another source."""
    baseline_id: Mapped[UUID | None]
    """Row id of its baseline; NULL: another source."""
    group_id: Mapped[UUID]
    """Row id of its group."""
    env_id: Mapped[UUID | None]
    """Row id of its environment; NULL before it requested one."""
    rollout_id: Mapped[String]
    """The text id: `demo/g0/step-3/group-2/env-1/attempt-0`."""
    batch: Mapped[Number]
    """Batch of the task data, from 0."""
    group_num: Mapped[Number]
    """Index of its group in the source, from 0."""
    env_index: Mapped[Number]
    """Place in the group, from 0."""
    attempt: Mapped[Number]
    """Number of the attempt, from 0."""
    task_id: Mapped[UUID]
    """Row id of its task."""
    model_path: Mapped[OptString]
    """Name of the policy; NULL: not recorded."""
    policy_version: Mapped[Number]
    """Version of the policy that samples its first turn."""
    is_eval: Mapped[bool]
    """True: it evaluates the policy; false: it is for training."""
    seed: Mapped[BigNumber]
    """Seed of the environment, the same for all rollouts of a group."""
    current_turn: Mapped[Number]
    """Turns taken so far."""
    env_creation_time: Mapped[OptReal]
    """From the creation of the rollout until its environment answered."""
    agent_init_time: Mapped[OptReal]
    """From that moment until the first request could be sampled."""
    task_start_time: Mapped[OptTime]
    """When the agent got the task."""
    task_end_time: Mapped[OptTime]
    """When the episode had been judged."""
    validation_time: Mapped[OptReal]
    """Duration of the validation."""
    rollout_time: Mapped[OptReal]
    """From the creation of the rollout to its end."""
    task_completed: Mapped[bool | None]
    """Whether the agent ended the episode itself."""
    task_success: Mapped[bool | None]
    """Whether it counts as solved."""
    agent_reported_success: Mapped[bool | None]
    """The agent's own claim; NULL: it made none."""
    validation_passed: Mapped[bool | None]
    """Whether the validator passed; NULL: not judged."""
    num_turns: Mapped[OptNumber]
    """Turns taken in all; NULL: it has not ended, or was cancelled."""
    max_turns: Mapped[Number]
    """Turns the agent may take."""
    reward: Mapped[OptReal]
    """Reward of the episode; NULL: not scored."""
    temperature: Mapped[Real]
    """Sampling temperature."""
    num_tokens: Mapped[OptBigNumber]
    """Completion tokens of all turns."""
    num_total_actions: Mapped[OptNumber]
    """Actions of all turns."""
    consecutive_repeated_actions: Mapped[OptNumber]
    """Actions equal to the one before."""
    parse_errors: Mapped[OptNumber]
    """Completions that could not be parsed."""
    tool_name_errors: Mapped[OptNumber]
    """Actions whose tool does not exist."""
    tool_arg_errors: Mapped[OptNumber]
    """Actions whose arguments do not fit their tool."""
    runtime_errors: Mapped[OptNumber]
    """Actions that the environment refused."""
    ran_out_of_turns: Mapped[bool | None]
    """Whether the limit of turns ended it."""
    attempted_completion: Mapped[bool | None]
    """Whether the agent reported that it was done."""
    turn_first_success: Mapped[OptNumber]
    """Turn after which the validator first passed; NULL: after none, or it is not asked after every
    turn (validate_every_turn off)."""
    turn_task_completed: Mapped[OptNumber]
    """Last turn of a solved episode that the agent ended itself."""
    error_type: Mapped[OptString]
    """The boundary that a failed attempt crossed: environment, environment_timeout, policy,
    validator, reward."""
    errors: Mapped[OptDocument]
    """List of messages of errors that did not end it."""
    summary_json: Mapped[OptDocument]
    """Further measurements."""
    trajectory_path: Mapped[OptString]
    """Always NULL: the turns are rows, and the log has everything else."""
    trajectory_data_json: Mapped[OptDocument]
    """Always NULL, like trajectory_path."""

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

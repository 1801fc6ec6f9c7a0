"""A training, its steps, and the rollouts that they used: rows of the streams `training/<id>`."""

from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import Index, UniqueConstraint
from sqlalchemy.orm import Mapped, relationship

from consumers.tables.base import (
    UPDATED_IN_PLACE,
    Base,
    BigNumber,
    CommonColumns,
    Document,
    EtaColumns,
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
    Time,
)

if TYPE_CHECKING:
    from consumers.tables.evaluation import Baseline, Eval
    from consumers.tables.group import Group


class Training(CommonColumns, EtaColumns, Base):
    """One training, across all resumes."""

    __tablename__ = "training"
    __table_args__ = (UniqueConstraint("run_name"), UPDATED_IN_PLACE)

    id: Mapped[Key]
    run_name: Mapped[String]
    """The command line's --training-name."""
    kind: Mapped[String]
    """rl, sft."""
    generation: Mapped[Number]
    """Incremented when a resumed training repeats steps."""
    log_path: Mapped[OptString]
    model_name: Mapped[String]
    lora_rank: Mapped[OptNumber]
    learning_rate: Mapped[Real]
    batch_size: Mapped[Number]
    group_size: Mapped[Number]
    groups_per_batch: Mapped[Number]
    max_tokens: Mapped[Number]
    temperature: Mapped[Real]
    kl_penalty_coef: Mapped[Real]
    num_substeps: Mapped[Number]
    max_turns: Mapped[Number]
    seed: Mapped[BigNumber]
    box_type: Mapped[String]
    renderer_name: Mapped[OptString]
    wandb_project: Mapped[OptString]
    wandb_name: Mapped[OptString]
    current_step: Mapped[Number]
    """Steps finished."""
    total_steps: Mapped[Number]
    last_heartbeat: Mapped[OptTime]
    """Time of the last HeartbeatSent; its age is computed when read."""
    checkpoint_path: Mapped[OptString]
    """The last checkpoint saved."""
    config_json: Mapped[Document]

    steps: Mapped[list["Step"]] = relationship(
        viewonly=True,
        primaryjoin="Training.id == foreign(Step.training_id)",
        order_by="Step.generation, Step.step",
    )
    evals: Mapped[list["Eval"]] = relationship(
        viewonly=True,
        primaryjoin="Training.id == foreign(Eval.training_id)",
        order_by="Eval.generation, Eval.step",
    )
    baselines: Mapped[list["Baseline"]] = relationship(
        viewonly=True,
        primaryjoin="Training.id == foreign(Baseline.training_id)",
        order_by="Baseline.created_at",
    )


class Step(CommonColumns, EtaColumns, Base):
    """One optimiser step: a batch of groups."""

    __tablename__ = "step"
    __table_args__ = (UniqueConstraint("training_id", "generation", "step"), UPDATED_IN_PLACE)

    id: Mapped[Key]
    training_id: Mapped[UUID]
    generation: Mapped[Number]
    step: Mapped[Number]
    """From 1."""
    superseded: Mapped[bool]
    """A newer generation repeats it."""
    batch: Mapped[Number]
    rollout_progress: Mapped[Real]
    training_progress: Mapped[Real]
    rollout_start_time: Mapped[OptTime]
    rollout_end_time: Mapped[OptTime]
    training_start_time: Mapped[OptTime]
    training_end_time: Mapped[OptTime]
    learning_rate: Mapped[Real]
    model_path: Mapped[OptString]
    checkpoint_path: Mapped[OptString]
    """NULL: no checkpoint was saved."""
    policy_version: Mapped[OptNumber]
    """The version that the step produced."""
    loss: Mapped[OptReal]
    kl_divergence: Mapped[OptReal]
    policy_gradient_norm: Mapped[OptReal]
    reward_mean: Mapped[OptReal]
    reward_std: Mapped[OptReal]
    num_trajectories: Mapped[OptNumber]
    num_tokens: Mapped[OptBigNumber]
    metrics_json: Mapped[OptDocument]

    training: Mapped[Training | None] = relationship(
        viewonly=True, primaryjoin="foreign(Step.training_id) == Training.id"
    )
    groups: Mapped[list["Group"]] = relationship(
        viewonly=True, primaryjoin="Step.id == foreign(Group.step_id)", order_by="Group.group_num"
    )
    samples: Mapped[list["Sample"]] = relationship(
        viewonly=True, primaryjoin="Step.id == foreign(Sample.step_id)"
    )


class Sample(Base):
    """The use of one rollout in one step."""

    __tablename__ = "sample"
    __table_args__ = (
        UniqueConstraint("step_id", "rollout_id"),
        Index(None, "rollout_id"),
        Index(None, "group_id"),
    )

    id: Mapped[Key]
    step_id: Mapped[UUID]
    group_id: Mapped[UUID]
    rollout_id: Mapped[UUID]
    advantage: Mapped[OptReal]
    reward: Mapped[Real]
    policy_version: Mapped[Number]
    """The version that sampled it."""
    staleness: Mapped[Number]
    """Versions between sampling and training."""
    num_tokens: Mapped[Number]
    used: Mapped[bool]
    drop_reason: Mapped[OptString]
    created_at: Mapped[Time]

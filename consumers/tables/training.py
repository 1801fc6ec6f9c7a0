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
    from consumers.tables.annotation import Annotation
    from consumers.tables.evaluation import Baseline, Eval
    from consumers.tables.group import Group


class Training(CommonColumns, EtaColumns, Base):
    """One training, across all resumes."""

    __tablename__ = "training"
    __table_args__ = (UniqueConstraint("run_name"), UPDATED_IN_PLACE)

    id: Mapped[Key]
    """Row id: a UUIDv5 of the natural key."""
    run_name: Mapped[String]
    """The command line's --training-name."""
    kind: Mapped[String]
    """rl or sft."""
    generation: Mapped[Number]
    """Incremented when a resumed training repeats steps."""
    log_path: Mapped[OptString]
    """Folder of resume states and checkpoints, on the trainer's host; NULL: not recorded."""
    model_name: Mapped[String]
    """The base policy: hub id or folder."""
    lora_rank: Mapped[OptNumber]
    """Rank of the LoRA adapters; NULL: no LoRA."""
    learning_rate: Mapped[Real]
    """Learning rate of the optimizer."""
    batch_size: Mapped[Number]
    """Rollouts per step."""
    group_size: Mapped[Number]
    """Rollouts per group."""
    groups_per_batch: Mapped[Number]
    """Groups per step."""
    max_tokens: Mapped[Number]
    """Limit of one completion, tokens."""
    temperature: Mapped[Real]
    """Sampling temperature in training."""
    kl_penalty_coef: Mapped[Real]
    """Weight of the KL penalty; 0: none."""
    num_substeps: Mapped[Number]
    """Optimizer updates per step."""
    max_turns: Mapped[Number]
    """Limit of one rollout, turns."""
    seed: Mapped[BigNumber]
    """Seed of all randomness."""
    box_type: Mapped[String]
    """Operating system of the devices: android, linux; `database` of environments without one."""
    renderer_name: Mapped[OptString]
    """How prompts and actions are written; NULL: not recorded."""
    wandb_project: Mapped[OptString]
    """Weights & Biases project; NULL: not mirrored."""
    wandb_name: Mapped[OptString]
    """Name of the run there; NULL: the training's name."""
    current_step: Mapped[Number]
    """Steps finished."""
    total_steps: Mapped[Number]
    """Steps requested."""
    last_heartbeat: Mapped[OptTime]
    """Time of the last heartbeat event."""
    checkpoint_path: Mapped[OptString]
    """The last checkpoint saved."""
    config_json: Mapped[Document]
    """The whole configuration of the last start; secrets are redacted."""

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
    annotations: Mapped[list["Annotation"]] = relationship(
        viewonly=True,
        primaryjoin="Training.id == foreign(Annotation.training_id)",
        order_by="Annotation.epoch, Annotation.sequence",
    )


class Step(CommonColumns, EtaColumns, Base):
    """One optimiser step: a batch of groups."""

    __tablename__ = "step"
    __table_args__ = (UniqueConstraint("training_id", "generation", "step"), UPDATED_IN_PLACE)

    id: Mapped[Key]
    """Row id: a UUIDv5 of the natural key."""
    training_id: Mapped[UUID]
    """Row id of its training."""
    generation: Mapped[Number]
    """Generation of the training that made it."""
    step: Mapped[Number]
    """Number of the step, from 1."""
    superseded: Mapped[bool]
    """Whether a newer generation repeats it."""
    batch: Mapped[Number]
    """Batch of the task data, from 0."""
    rollout_progress: Mapped[Real]
    """Progress of the rollouts, 0-100."""
    training_progress: Mapped[Real]
    """Progress of the update, 0-100."""
    rollout_start_time: Mapped[OptTime]
    """When its first rollout started."""
    rollout_end_time: Mapped[OptTime]
    """When its last rollout ended."""
    training_start_time: Mapped[OptTime]
    """When the update started."""
    training_end_time: Mapped[OptTime]
    """When the update ended."""
    learning_rate: Mapped[Real]
    """Learning rate of this step."""
    model_path: Mapped[OptString]
    """Name of the policy that sampled its rollouts; NULL: not recorded."""
    checkpoint_path: Mapped[OptString]
    """Path of the checkpoint of this step; NULL: none was saved."""
    policy_version: Mapped[OptNumber]
    """The version that the step produced."""
    loss: Mapped[OptReal]
    """Loss, summed over the samples of all optimiser updates; NULL: the step has not finished."""
    kl_divergence: Mapped[OptReal]
    """Mean of log p_sampling - log p_training over the action tokens, nats."""
    policy_gradient_norm: Mapped[OptReal]
    """Global L2 norm of the gradient before clipping, mean over the optimiser updates."""
    reward_mean: Mapped[OptReal]
    """Mean reward of its rollouts."""
    reward_std: Mapped[OptReal]
    """Population standard deviation of those rewards."""
    num_trajectories: Mapped[OptNumber]
    """Rollouts that ended with a reward."""
    num_tokens: Mapped[OptBigNumber]
    """Completion tokens of those rollouts."""
    metrics_json: Mapped[OptDocument]
    """Further measurements under tinker-cookbook's names."""

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
    """Row id: a UUIDv5 of the natural key."""
    step_id: Mapped[UUID]
    """Row id of the step that could train on it."""
    group_id: Mapped[UUID]
    """Row id of the rollout's group."""
    rollout_id: Mapped[UUID]
    """Row id of the rollout."""
    advantage: Mapped[OptReal]
    """Where it differs between tokens (gae, prime, core functions), their mean. NULL: not defined;
    for a sample that is not used only `mean_centered` defines one, for one without a token gae and
    prime define none."""
    reward: Mapped[Real]
    """Reward of the rollout."""
    policy_version: Mapped[Number]
    """The version that sampled it."""
    staleness: Mapped[Number]
    """Versions between sampling and training."""
    num_tokens: Mapped[Number]
    """Completion tokens."""
    used: Mapped[bool]
    """Whether the step trained on it."""
    drop_reason: Mapped[OptString]
    """zero_variance, stale, group_failed, truncated (a completion was cut at max_tokens), or
    baseline (a greedy rollout, which its group is compared with); NULL: it was used."""
    created_at: Mapped[Time]
    """Time of the event that chose it."""

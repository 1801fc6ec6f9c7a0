"""Events of a training, emitted by its trainer; stream `training/<id>`."""

from typing import ClassVar, Literal

from pydantic import JsonValue

from schemas.base import BigInt, Count, Id, Items, KeyText, Payload, Progress, UtcTime, Value

RECORDED_BY = "recorded_by"
"""Field of the configuration of a training that another trainer runs (`producer.record`)."""
Phase = Literal["initialization", "rollout", "training", "evaluation", "checkpointing"]


class Recipe(Value):
    """The settings that have columns of their own; `config` contains all settings."""

    log_path: str | None = None
    """Folder of the run's state and checkpoints; None: not recorded."""
    model_name: str
    """Hub id or folder of the base policy."""
    lora_rank: Count | None = None
    """Rank of the LoRA adapters; None: no LoRA."""
    learning_rate: float
    """Of the optimizer."""
    batch_size: Count
    """Rollouts per step: group_size x groups_per_batch. Supervised: sequences per step."""
    group_size: Count
    """Rollouts per group."""
    groups_per_batch: Count
    """Groups per step."""
    max_tokens: Count
    """Limit of one completion, tokens; 0: supervised training, which samples nothing."""
    temperature: float
    """Of sampling in training; 0 in supervised training, which samples nothing."""
    kl_penalty_coef: float
    """Weight of the KL penalty; 0: no penalty."""
    num_substeps: Count
    """Optimizer updates per step."""
    max_turns: Count
    """Limit of one rollout, turns."""
    seed: BigInt
    """Of all randomness."""
    box_type: str
    """Operating system of the devices: android, linux; `database` of environments without one."""
    renderer_name: str | None = None
    """How prompts and actions are written; None: not recorded."""
    wandb_project: str | None = None
    """Weights & Biases project; None: not mirrored."""
    wandb_name: str | None = None
    """Name of the run there; None: the training's name."""


class TrainingCreated(Payload):
    """A training is created with its configuration."""

    TYPE: ClassVar[str] = "cua.training.created"
    ENTITY: ClassVar[str | None] = "training"
    STATUS: ClassVar[str | None] = "pending"
    CREATES: ClassVar[bool] = True

    run_name: KeyText
    """--training-name, which identifies the training."""
    kind: Literal["rl", "sft"] = "rl"
    """Reinforcement learning, or training on given answers: a built-in policy's warm-up, or
    `cua-train sql sft` and `reward-model`."""
    recipe: Recipe
    """The main settings."""
    total_steps: Count
    """Requested steps."""
    config: dict[str, JsonValue]
    """The whole configuration; secrets are redacted."""


class TrainingInitializing(Payload):
    """The trainer started to load the policy and the tasks."""

    TYPE: ClassVar[str] = "cua.training.initialization_started"
    ENTITY: ClassVar[str | None] = "training"
    STATUS: ClassVar[str | None] = "initializing"

    status_message: str | None = None
    """Details of the status; None: there are none."""


class TrainingStarted(Payload):
    """Everything is loaded; training started."""

    TYPE: ClassVar[str] = "cua.training.started"
    ENTITY: ClassVar[str | None] = "training"
    STATUS: ClassVar[str | None] = "running"

    current_step: Count
    """Finished steps."""
    status_message: str | None = None
    """Details of the status; None: there are none."""


class TrainingProgressed(Payload):
    """Progress of the training; throttled."""

    TYPE: ClassVar[str] = "cua.training.progressed"
    ENTITY: ClassVar[str | None] = "training"

    current_phase: Phase
    """What is being done."""
    current_step: Count
    """Finished steps."""
    progress: Progress
    """Of the whole training."""
    status_message: str | None = None
    """Details of the status; None: there are none."""


class HeartbeatSent(Payload):
    """The trainer was alive at the event's time."""

    TYPE: ClassVar[str] = "cua.training.heartbeat_sent"
    ENTITY: ClassVar[str | None] = "training"


class TrainingPaused(Payload):
    """The trainer is waiting, on request or for a resource."""

    TYPE: ClassVar[str] = "cua.training.paused"
    ENTITY: ClassVar[str | None] = "training"
    STATUS: ClassVar[str | None] = "paused"

    status_message: str
    """Details of the status."""


class TrainingResumed(Payload):
    """A new process continues the training; the first event of a new epoch."""

    TYPE: ClassVar[str] = "cua.training.resumed"
    ENTITY: ClassVar[str | None] = "training"
    STATUS: ClassVar[str | None] = "initializing"

    generation: Count
    """Higher than before if steps are retrained from an older checkpoint or from the start."""
    current_step: Count
    """Finished steps that are kept."""
    total_steps: Count
    """Requested steps."""
    recipe: Recipe
    """The main settings."""
    config: dict[str, JsonValue]
    """The whole configuration; secrets are redacted."""
    status_message: str | None = None
    """Details of the status; None: there are none."""


class TrainingCompleted(Payload):
    """All requested steps are finished."""

    TYPE: ClassVar[str] = "cua.training.completed"
    ENTITY: ClassVar[str | None] = "training"
    STATUS: ClassVar[str | None] = "completed"

    current_step: Count
    """Finished steps."""
    progress: Progress
    """Of the whole training."""
    ended_at: UtcTime
    """When it ended."""
    status_message: str | None = None
    """Details of the status; None: there are none."""


class TrainingFailed(Payload):
    """The training ended with an error."""

    TYPE: ClassVar[str] = "cua.training.failed"
    ENTITY: ClassVar[str | None] = "training"
    STATUS: ClassVar[str | None] = "failed"

    error_message: str
    """What went wrong."""
    ended_at: UtcTime
    """When it ended."""


class TrainingCancelled(Payload):
    """The training was stopped (Ctrl-C, SIGTERM); the same command continues it."""

    TYPE: ClassVar[str] = "cua.training.cancelled"
    ENTITY: ClassVar[str | None] = "training"
    STATUS: ClassVar[str | None] = "cancelled"

    status_message: str
    """Details of the status."""
    ended_at: UtcTime
    """When it ended."""


class StepSuperseded(Payload):
    """A new generation retrains this step: the step is marked with its groups, never deleted."""

    TYPE: ClassVar[str] = "cua.training.step_superseded"

    step_id: Id
    """The step."""
    group_ids: Items[Id] = ()
    """The step's groups."""

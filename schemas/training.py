"""Facts about a whole training; its one writer is the trainer, stream `training/<id>`."""

from typing import ClassVar, Literal

from pydantic import JsonValue

from schemas.base import Count, Id, Payload, Progress, UtcTime, Value

Phase = Literal["initialization", "rollout", "training", "evaluation", "checkpointing"]


class Recipe(Value):
    """The settings that have columns of their own in the training row.

    `config` holds all of them.
    """

    log_path: str | None = None
    """Folder of the run's state and checkpoints."""
    model_name: str
    """Policy: hub id or folder."""
    lora_rank: Count | None = None
    learning_rate: float
    batch_size: Count
    """Rollouts per step: group_size x groups_per_batch."""
    group_size: Count
    groups_per_batch: Count
    max_tokens: Count
    """Upper bound of one completion, in tokens."""
    temperature: float
    kl_penalty_coef: float
    num_substeps: Count
    max_turns: Count
    seed: int
    box_type: str
    renderer_name: str | None = None
    wandb_project: str | None = None
    wandb_name: str | None = None


class TrainingCreated(Payload):
    """A training begins to exist, with everything it was asked to do."""

    TYPE: ClassVar[str] = "cua.training.created"
    ENTITY: ClassVar[str | None] = "training"
    STATUS: ClassVar[str | None] = "pending"
    CREATES: ClassVar[bool] = True

    run_name: str
    """The command line's --training-name: the training's identity."""
    kind: Literal["rl", "sft"] = "rl"
    """What kind of training: reinforcement learning, or supervised (the default policy's warm-up).
    """
    recipe: Recipe
    total_steps: Count
    config: dict[str, JsonValue]
    """The whole configuration, keys redacted."""


class TrainingInitializing(Payload):
    """The trainer has begun to load the policy and the tasks."""

    TYPE: ClassVar[str] = "cua.training.initialization_started"
    ENTITY: ClassVar[str | None] = "training"
    STATUS: ClassVar[str | None] = "initializing"

    status_message: str | None = None


class TrainingStarted(Payload):
    """Everything is loaded; the training runs."""

    TYPE: ClassVar[str] = "cua.training.started"
    ENTITY: ClassVar[str | None] = "training"
    STATUS: ClassVar[str | None] = "running"

    current_step: Count
    """Steps finished so far."""
    status_message: str | None = None


class TrainingProgressed(Payload):
    """How far the training is; throttled."""

    TYPE: ClassVar[str] = "cua.training.progressed"
    ENTITY: ClassVar[str | None] = "training"

    current_phase: Phase
    current_step: Count
    progress: Progress
    status_message: str | None = None


class HeartbeatSent(Payload):
    """The trainer is alive at the event's time."""

    TYPE: ClassVar[str] = "cua.training.heartbeat_sent"
    ENTITY: ClassVar[str | None] = "training"


class TrainingPaused(Payload):
    """The trainer waits, on request or for something it needs."""

    TYPE: ClassVar[str] = "cua.training.paused"
    ENTITY: ClassVar[str | None] = "training"
    STATUS: ClassVar[str | None] = "paused"

    status_message: str


class TrainingResumed(Payload):
    """A new process continues the training; always the first event of a new epoch."""

    TYPE: ClassVar[str] = "cua.training.resumed"
    ENTITY: ClassVar[str | None] = "training"
    STATUS: ClassVar[str | None] = "initializing"

    generation: Count
    """Raised where steps are trained again from an older checkpoint or from the start."""
    current_step: Count
    """Steps finished that this generation keeps."""
    total_steps: Count
    recipe: Recipe
    config: dict[str, JsonValue]
    status_message: str | None = None


class TrainingCompleted(Payload):
    """Every step that was asked for is done."""

    TYPE: ClassVar[str] = "cua.training.completed"
    ENTITY: ClassVar[str | None] = "training"
    STATUS: ClassVar[str | None] = "completed"

    current_step: Count
    progress: Progress
    ended_at: UtcTime
    status_message: str | None = None


class TrainingFailed(Payload):
    """The training stopped on an error."""

    TYPE: ClassVar[str] = "cua.training.failed"
    ENTITY: ClassVar[str | None] = "training"
    STATUS: ClassVar[str | None] = "failed"

    error_message: str
    ended_at: UtcTime


class TrainingCancelled(Payload):
    """Somebody stopped the training (Ctrl-C, SIGTERM); the same command continues it."""

    TYPE: ClassVar[str] = "cua.training.cancelled"
    ENTITY: ClassVar[str | None] = "training"
    STATUS: ClassVar[str | None] = "cancelled"

    status_message: str
    ended_at: UtcTime


class StepSuperseded(Payload):
    """Steps of an older generation that a new one trains again: marked, never deleted.

    One event per step, groups included.
    """

    TYPE: ClassVar[str] = "cua.training.step_superseded"

    step_id: Id
    group_ids: tuple[Id, ...] = ()
    """The step's groups, marked with it."""

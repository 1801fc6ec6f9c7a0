"""Facts about one optimiser step (a batch of groups); they stand in the training's stream."""

from typing import ClassVar, Literal

from pydantic import JsonValue

from schemas.base import Count, Id, Payload, Percent, Progress, UtcTime, Value


class StepCreated(Payload):
    """A step is planned."""

    TYPE: ClassVar[str] = "cua.step.created"
    ENTITY: ClassVar[str | None] = "step"
    STATUS: ClassVar[str | None] = "pending"
    CREATES: ClassVar[bool] = True

    step_id: Id
    generation: Count
    step: Count
    """From 1."""
    batch: Count
    """Position in the task data, from 0."""
    learning_rate: float
    model_path: str | None
    """The policy that the step's rollouts start from."""


class StepCollectionStarted(Payload):
    """The step's groups are being built (`rollout_collecting`)."""

    TYPE: ClassVar[str] = "cua.step.collection_started"
    ENTITY: ClassVar[str | None] = "step"
    STATUS: ClassVar[str | None] = "rollout_collecting"

    step_id: Id


class StepRolloutsStarted(Payload):
    """The first rollouts of the step run (`rollout_running`)."""

    TYPE: ClassVar[str] = "cua.step.rollouts_started"
    ENTITY: ClassVar[str | None] = "step"
    STATUS: ClassVar[str | None] = "rollout_running"

    step_id: Id
    rollout_started_at: UtcTime


class StepTrainingStarted(Payload):
    """Every rollout is in; the update runs (`training`)."""

    TYPE: ClassVar[str] = "cua.step.training_started"
    ENTITY: ClassVar[str | None] = "step"
    STATUS: ClassVar[str | None] = "training"

    step_id: Id
    rollout_ended_at: UtcTime
    training_started_at: UtcTime


class StepProgressed(Payload):
    """How far the step is; throttled."""

    TYPE: ClassVar[str] = "cua.step.progressed"
    ENTITY: ClassVar[str | None] = "step"

    step_id: Id
    current_phase: Literal["rollout_collection", "rollout_execution", "training", "checkpointing"]
    rollout_progress: Percent
    training_progress: Percent
    progress: Progress


class StepFinished(Payload):
    """The policy was updated; its resume state lies on disk."""

    TYPE: ClassVar[str] = "cua.step.finished"
    ENTITY: ClassVar[str | None] = "step"
    STATUS: ClassVar[str | None] = "completed"

    step_id: Id
    training_ended_at: UtcTime
    loss: float
    """The loss function's value over the whole batch, summed over substeps' samples; 0 when no
    sample had an advantage."""
    kl_divergence: float
    """Mean of log p_sampling - log p_training over the action tokens (optim/kl_sample_train_v1),
    nats; 0 when nothing was trained."""
    policy_gradient_norm: float
    """Global L2 norm of the gradient before clipping; mean over substeps; 0 when nothing was
    trained."""
    reward_mean: float
    reward_std: float
    """Population standard deviation over the step's rollouts."""
    num_trajectories: Count
    """Rollouts that ended with a reward."""
    num_tokens: Count
    """Completion tokens of those rollouts."""
    policy_version: Count
    """The version that this step made."""
    progress: Progress
    metrics: dict[str, JsonValue]
    """tinker-cookbook's names: optim/lr, env/all/reward/total, time/..."""


class StepFailed(Payload):
    """The step ended on an error."""

    TYPE: ClassVar[str] = "cua.step.failed"
    ENTITY: ClassVar[str | None] = "step"
    STATUS: ClassVar[str | None] = "failed"

    step_id: Id
    error_message: str
    ended_at: UtcTime


class Sample(Value):
    """The use of one rollout in a step."""

    rollout_id: Id
    group_id: Id
    advantage: float | None
    """None where the sample was not used and no advantage is defined."""
    reward: float
    policy_version: Count
    """The version that sampled it."""
    staleness: Count
    """Versions between sampling and training."""
    num_tokens: Count
    """Completion tokens."""
    used: bool
    drop_reason: str | None = None
    """Why not used: zero_variance, stale, group_failed."""


class SamplesChosen(Payload):
    """Which rollouts of one group train the step, and how much each counts."""

    TYPE: ClassVar[str] = "cua.step.samples_chosen"

    step_id: Id
    samples: tuple[Sample, ...]

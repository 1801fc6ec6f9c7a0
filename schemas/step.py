"""Events of an optimizer step on a batch of groups; stream of its training."""

from typing import ClassVar, Literal

from pydantic import JsonValue

from schemas.base import BigCount, Count, Id, Items, Payload, Percent, Progress, UtcTime, Value


class StepCreated(Payload):
    """A step is planned."""

    TYPE: ClassVar[str] = "cua.step.created"
    ENTITY: ClassVar[str | None] = "step"
    STATUS: ClassVar[str | None] = "pending"
    CREATES: ClassVar[bool] = True

    step_id: Id
    """Hash of training, generation and step number."""
    generation: Count
    """Generation of the training."""
    step: Count
    """Number of the step, from 1."""
    batch: Count
    """Batch of the task data, from 0."""
    learning_rate: float
    """Learning rate of this step."""
    model_path: str | None
    """Name of the policy that samples the rollouts; None: not recorded."""


class StepCollectionStarted(Payload):
    """The groups of the step are being planned."""

    TYPE: ClassVar[str] = "cua.step.collection_started"
    ENTITY: ClassVar[str | None] = "step"
    STATUS: ClassVar[str | None] = "rollout_collecting"

    step_id: Id
    """The step."""


class StepRolloutsStarted(Payload):
    """The first rollouts of the step started."""

    TYPE: ClassVar[str] = "cua.step.rollouts_started"
    ENTITY: ClassVar[str | None] = "step"
    STATUS: ClassVar[str | None] = "rollout_running"

    step_id: Id
    """The step."""
    rollout_started_at: UtcTime
    """When the first rollout started."""


class StepTrainingStarted(Payload):
    """All rollouts have ended; the policy update started."""

    TYPE: ClassVar[str] = "cua.step.training_started"
    ENTITY: ClassVar[str | None] = "step"
    STATUS: ClassVar[str | None] = "training"

    step_id: Id
    """The step."""
    rollout_ended_at: UtcTime
    """When the last rollout ended."""
    training_started_at: UtcTime
    """When the update started."""


class StepProgressed(Payload):
    """Progress of the step; throttled."""

    TYPE: ClassVar[str] = "cua.step.progressed"
    ENTITY: ClassVar[str | None] = "step"

    step_id: Id
    """The step."""
    current_phase: Literal["rollout_collection", "rollout_execution", "training", "checkpointing"]
    """What is being done."""
    rollout_progress: Percent
    """Progress of the rollouts, 0-100."""
    training_progress: Percent
    """Progress of the update, 0-100."""
    progress: Progress
    """Progress of the whole step."""


class StepFinished(Payload):
    """The policy was updated and the resume state is on disk."""

    TYPE: ClassVar[str] = "cua.step.finished"
    ENTITY: ClassVar[str | None] = "step"
    STATUS: ClassVar[str | None] = "completed"

    step_id: Id
    """The step."""
    training_ended_at: UtcTime
    """When the update ended."""
    loss: float
    """Value of the loss function, summed over the samples of all substeps, or their mean with a
    loss_aggregation that is one; 0 if no sample had an advantage."""
    kl_divergence: float | None
    """Mean of log p_sampling - log p_training over the action tokens of all trajectories, groups of
    one reward included, nats (tinker-cookbook's optim/kl_sample_train_v1); 0 if there were none;
    None: supervised training."""
    policy_gradient_norm: float | None
    """Global L2 norm of the gradient before clipping, mean over substeps; 0 if nothing was
    trained; None: not measured."""
    reward_mean: float | None
    """Mean reward over the rollouts of the step; None: supervised training has none."""
    reward_std: float | None
    """Population standard deviation of those rewards; None: there are none."""
    num_trajectories: Count
    """Rollouts that ended with a reward."""
    num_tokens: BigCount
    """Completion tokens of those rollouts."""
    policy_version: Count
    """Version of the policy after the update."""
    progress: Progress
    """Progress of the whole step."""
    metrics: dict[str, JsonValue]
    """Under tinker-cookbook's names: optim/lr, env/all/reward/total, time/..."""


class StepFailed(Payload):
    """The step ended with an error."""

    TYPE: ClassVar[str] = "cua.step.failed"
    ENTITY: ClassVar[str | None] = "step"
    STATUS: ClassVar[str | None] = "failed"

    step_id: Id
    """The step."""
    error_message: str
    """What went wrong."""
    ended_at: UtcTime
    """When it failed."""


class Sample(Value):
    """The use of one rollout in a step."""

    rollout_id: Id
    """The rollout."""
    group_id: Id
    """Its group."""
    advantage: float | None
    """Where it differs between tokens (gae, prime, core functions), their mean. None: not defined;
    for a sample that is not used only `mean_centered` defines one, for one without a token gae and
    prime define none."""
    reward: float
    """Reward of the rollout."""
    policy_version: Count
    """Version of the policy that sampled it."""
    staleness: Count
    """Policy versions between sampling and training."""
    num_tokens: Count
    """Completion tokens."""
    used: bool
    """Whether the step trains on it."""
    drop_reason: str | None = None
    """zero_variance, stale, group_failed, truncated (a completion was cut at max_tokens), or
    baseline (a greedy rollout, which its group is compared with); None: it is used."""


class SamplesChosen(Payload):
    """Which rollouts of one group the step trains on, with their advantages."""

    TYPE: ClassVar[str] = "cua.step.samples_chosen"

    step_id: Id
    """The step."""
    samples: Items[Sample]
    """One per rollout that ended with a reward."""

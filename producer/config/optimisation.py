"""Fields of the configuration: batches and the policy's update."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from producer.algorithms.names import AdvantageName, BaselineName
from producer.algorithms.settings import (
    GaeSettings,
    KlSettings,
    LossSettings,
    OptimizerSettings,
    PrimeSettings,
)
from producer.numbers import (
    BatchPart,
    NonNegativeInt,
    PositiveInt,
)


class BatchFields(BaseModel):
    """Batches, learning-rate schedule and advantages."""

    num_steps: NonNegativeInt = Field(100, description="Training steps in total.")
    groups_per_batch: BatchPart = Field(10, description="Groups per training step.")
    group_size: BatchPart = Field(
        4, description="Rollouts per group: attempts at the same task, compared with each other."
    )
    max_steps_off_policy: PositiveInt | None = Field(
        None,
        description=(
            "Collect later steps' rollouts while a step is trained: a rollout may be up to so many"
            " policy versions old when it is trained on. Without it every rollout is of the newest"
            " version."
        ),
    )
    stream_minibatch: bool = Field(
        False,
        description=(
            "Begin a step's gradients while rollouts still run: as soon as all groups of a"
            " minibatch have ended. The weights change after the last rollout, as without it."
        ),
    )
    num_minibatches: PositiveInt | None = Field(
        None,
        description=(
            "With stream_minibatch: minibatches per optimiser step, equal shares of the groups in"
            " their order; without it each group is one."
        ),
    )
    learning_rate_schedule: Literal["constant", "cosine"] = Field(
        "constant",
        description=(
            "After the warm-up: constant, or falling along half a cosine to"
            " min_learning_rate_ratio at the last step; num_steps is then fixed."
        ),
    )
    min_learning_rate_ratio: Annotated[float, Field(ge=0, le=1)] = Field(
        0.0, description="With the schedule cosine: share of the learning rate that is left."
    )
    learning_rate_warmup_steps: NonNegativeInt = Field(
        0,
        description=(
            "Training steps over which the learning rate rises linearly: step n has n/N of it."
        ),
    )
    advantage: AdvantageName = Field(
        "mean_centered",
        description="How rewards become advantages; docs/algorithms.md has the formulas.",
    )
    advantage_by_std: bool = Field(
        False,
        description=(
            "With the advantage mean_centered: divide by the standard deviation of the group"
            " (+ 0.05)."
        ),
    )
    baseline: BaselineName = Field(
        "none",
        description=(
            "With the advantage reinforce: taken off the reward; nothing, the moving average of"
            " earlier steps' rewards, or the mean of the group."
        ),
    )
    baseline_momentum: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.9,
        description="With the baseline moving: how much of it a step's mean reward leaves.",
    )
    remove_constant_reward_groups: bool = Field(
        True,
        description=(
            "Do not train on groups whose rewards are all equal; they are recorded as dropped. Off"
            " by default with the advantages gae, remax and reinforce, which do not compare within"
            " a group."
        ),
    )


class OptimisationFields(
    PrimeSettings,  # pydantic orders fields from the last base to the first
    GaeSettings,
    KlSettings,
    LossSettings,
    OptimizerSettings,
    BatchFields,
):
    """Batches and the policy's update."""

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
        4,
        description=(
            "Rollouts per group: attempts at the same task, which are compared with each other."
        ),
    )
    max_steps_off_policy: PositiveInt | None = Field(
        None,
        description=(
            "Collect rollouts of later steps during an update. A rollout may be this many policy"
            " versions old when it is trained on."
        ),
    )
    stream_minibatch: bool = Field(
        False,
        description=(
            "Start a step's gradients while rollouts still run, once all groups of a minibatch"
            " have ended. The weights change only after the last rollout."
        ),
    )
    num_minibatches: PositiveInt | None = Field(
        None,
        description=(
            "With stream_minibatch: minibatches per optimiser step, as equal shares of the groups"
            " in order."
        ),
    )
    learning_rate_schedule: Literal["constant", "cosine"] = Field(
        "constant",
        description=(
            "After the warm-up: constant, or half a cosine down to min_learning_rate_ratio at the"
            " last step, which fixes num_steps."
        ),
    )
    min_learning_rate_ratio: Annotated[float, Field(ge=0, le=1)] = Field(
        0.0, description="With the schedule cosine: final share of the learning rate."
    )
    learning_rate_warmup_steps: NonNegativeInt = Field(
        0,
        description="Training steps N of the linear warm-up: step n has n/N of the learning rate.",
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
            "With the advantage reinforce: subtracted from the reward: nothing, a moving average"
            " of earlier steps' mean rewards, or the group's mean."
        ),
    )
    baseline_momentum: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.9,
        description="With the baseline moving: share of the old average that a step keeps.",
    )
    remove_constant_reward_groups: bool = Field(
        True,
        description=(
            "Drop groups with all rewards equal from training; they are recorded as dropped. Off"
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

"""Fields of the configuration: batches and the policy's update."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from producer.algorithms.names import (
    AdvantageName,
    AggregationName,
    BaselineName,
    KlName,
    KlPlace,
    LossName,
)
from producer.config.numbers import (
    BatchPart,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)


class OptimisationFields(BaseModel):
    """Batches and the policy's update."""

    num_steps: NonNegativeInt = Field(100, description="Training steps in total.")
    groups_per_batch: BatchPart = Field(10, description="Groups per training step.")
    group_size: BatchPart = Field(
        4, description="Rollouts per group: attempts at the same task, compared with each other."
    )
    num_substeps: PositiveInt = Field(1, description="Optimiser steps per batch.")
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
    ppo_epochs: PositiveInt = Field(
        1, description="Passes over a step's rollouts, each of num_substeps optimiser steps."
    )
    learning_rate: NonNegativeFloat = Field(1e-5, description="Learning rate of Adam.")
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
    weight_decay: NonNegativeFloat = Field(
        0.0, description="Of AdamW: each step takes learning_rate x this of a trained weight."
    )
    learning_rate_warmup_steps: NonNegativeInt = Field(
        0,
        description=(
            "Training steps over which the learning rate rises linearly: step n has n/N of it."
        ),
    )
    max_gradient_norm: PositiveFloat | None = Field(
        None, description="Clip the gradient to this global L2 norm."
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
    gae_gamma: Annotated[float, Field(ge=0, le=1)] = Field(
        1.0, description="With the advantage gae: discount of a reward per token."
    )
    gae_lambda: Annotated[float, Field(ge=0, le=1)] = Field(
        1.0,
        description=(
            "With the advantage gae: 1 compares all later rewards with a token's value, 0 the next"
            " token's value alone."
        ),
    )
    value_learning_rate: NonNegativeFloat = Field(
        1e-3, description="With the advantage gae: learning rate of the value head."
    )
    value_clip: PositiveFloat = Field(
        0.5,
        description=(
            "With the advantage gae: a value counts in the value loss at most this far from the one"
            " before the update."
        ),
    )
    value_coef: NonNegativeFloat = Field(
        0.0,
        description=(
            "With the advantage gae: weight of the value loss in the adapter's gradient; with 0"
            " only the value head is trained on it."
        ),
    )
    prime_learning_rate: NonNegativeFloat = Field(
        1e-4, description="With the advantage prime: learning rate of the reward model's adapter."
    )
    prime_beta: PositiveFloat = Field(
        0.05,
        description=(
            "With the advantage prime: a token's reward is this times its log-ratio of reward model"
            " and reference."
        ),
    )
    prime_process_coef: PositiveFloat = Field(
        5.0, description="With the advantage prime: weight of the rewards of tokens."
    )
    prime_outcome_coef: NonNegativeFloat = Field(
        5.0, description="With the advantage prime: weight of the rollouts' rewards."
    )
    remove_constant_reward_groups: bool = Field(
        True,
        description=(
            "Do not train on groups whose rewards are all equal; they are recorded as dropped. Off"
            " by default with the advantages gae, remax and reinforce, which do not compare within"
            " a group."
        ),
    )
    loss_fn: LossName = Field(
        "importance_sampling", description="Loss function of the policy update."
    )
    clip_ratio_low: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None,
        description="With the losses ppo, cispo and gspo: clip probability ratios at 1 - this.",
    )
    clip_ratio_high: PositiveFloat | None = Field(
        None,
        description="With the losses ppo, cispo and gspo: clip probability ratios at 1 + this.",
    )
    dual_clip: Annotated[float, Field(gt=1, allow_inf_nan=False)] | None = Field(
        None,
        description=(
            "With the loss ppo: largest probability ratio that counts where the advantage is"
            " negative."
        ),
    )
    loss_aggregation: AggregationName = Field(
        "sum",
        description=(
            "Over the tokens of an optimiser step: their sum, their mean (token_mean), the mean"
            " over sequences of their token means (sequence_mean) or token sums (sequence_sum)."
        ),
    )
    kl_penalty_coef: NonNegativeFloat = Field(
        0.0, description="Weight of the KL penalty against the policy without its adapter."
    )
    kl_estimator: KlName = Field("k1", description="Estimator of the KL penalty.")
    kl_in: KlPlace = Field(
        "advantage",
        description=(
            "What the KL penalty is a term of: the advantages, relative to the batch's mean"
            " (tinker-cookbook), or the loss."
        ),
    )
    entropy_coef: NonNegativeFloat = Field(
        0.0,
        description=(
            "Weight of the entropy bonus: the entropy of each token's distribution, aggregated as"
            " the loss and subtracted from it."
        ),
    )
    compute_post_kl: bool = Field(
        False,
        description="Measure every sampled token again after the update (kl_pre_post_v1).",
    )

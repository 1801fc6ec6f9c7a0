"""Groups of settings that algorithms read: fields of the configuration, passed whole.

The configuration inherits every group, so that each setting has one definition.
"""

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from producer.algorithms.names import AggregationName, KlName, KlPlace, LossName
from producer.numbers import NonNegativeFloat, PositiveFloat, PositiveInt, UserFields


class SettingsGroup(UserFields):
    """Frozen, and without fields of other groups; the text under a field is its description."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        protected_namespaces=(),
        use_attribute_docstrings=True,
        hide_input_in_errors=True,  # a key that was passed by mistake
    )


class OptimizerSettings(SettingsGroup):
    """Steps of the optimiser."""

    num_substeps: PositiveInt = Field(1, description="Optimiser steps per batch.")
    group_by_prefix: bool = Field(
        False,
        description=(
            "Keep rollouts with a common prompt prefix (one task's, or questions about one"
            " database) adjacent where a batch is split into optimiser steps, so that they share"
            " its computation. Off: split at random."
        ),
    )
    ppo_epochs: PositiveInt = Field(
        1, description="Passes over a step's rollouts, each of num_substeps optimiser steps."
    )
    learning_rate: NonNegativeFloat = Field(1e-5, description="Learning rate of Adam.")
    weight_decay: NonNegativeFloat = Field(
        0.0,
        description=(
            "Weight decay of AdamW: each step subtracts learning_rate x this x the weight."
        ),
    )
    max_gradient_norm: PositiveFloat | None = Field(
        None, description="Clip the gradient to this global L2 norm."
    )


class LossSettings(SettingsGroup):
    """The policy-gradient loss and its entropy bonus."""

    loss_fn: LossName = Field(
        "importance_sampling", description="Loss function of the policy update."
    )
    clip_ratio_low: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None,
        description="With the losses ppo, cispo and gspo: clips probability ratios at 1 - this.",
    )
    clip_ratio_high: PositiveFloat | None = Field(
        None,
        description="With the losses ppo, cispo and gspo: clips probability ratios at 1 + this.",
    )
    dual_clip: Annotated[float, Field(gt=1, allow_inf_nan=False)] | None = Field(
        None,
        description=(
            "With the loss ppo: clips probability ratios at this where the advantage is negative."
        ),
    )
    importance_cap: Annotated[float, Field(ge=1, allow_inf_nan=False)] | None = Field(
        None,
        description=(
            "Truncated importance sampling: token losses are weighted by the ratio of the learner's"
            " to the sampler's probability before the update, at most this (2 in verl); the loss's"
            " own ratio is then relative to the learner before the update. Only with base_url or"
            " max_steps_off_policy."
        ),
    )
    loss_aggregation: AggregationName = Field(
        "sum",
        description=(
            "How token losses of an optimiser step are aggregated: sum, token_mean, or the mean"
            " over sequences of their token means (sequence_mean) or token sums (sequence_sum)."
        ),
    )
    entropy_coef: NonNegativeFloat = Field(
        0.0,
        description=(
            "Weight of the entropy bonus: the entropy of the token distributions, aggregated as"
            " the loss and subtracted from it."
        ),
    )


class KlSettings(SettingsGroup):
    """The KL penalty against the base policy, and what is measured of it."""

    kl_penalty_coef: NonNegativeFloat = Field(
        0.0, description="Weight of the KL penalty against the policy without its adapter."
    )
    kl_estimator: KlName = Field("k1", description="Estimator of the KL penalty.")
    kl_in: KlPlace = Field(
        "advantage",
        description=(
            "Apply the KL penalty to the advantages, relative to the batch's mean (as"
            " tinker-cookbook), or as a term of the loss."
        ),
    )
    compute_post_kl: bool = Field(
        False,
        description=(
            "Compute the KL divergence of the update: runs every sampled token through the new"
            " policy (kl_pre_post_v1)."
        ),
    )


class GaeSettings(SettingsGroup):
    """Generalised advantage estimation and its value head (verl: algorithm, critic)."""

    gae_gamma: Annotated[float, Field(ge=0, le=1)] = Field(
        1.0, description="With the advantage gae: discount of a reward per token."
    )
    gae_lambda: Annotated[float, Field(ge=0, le=1)] = Field(
        1.0,
        description=(
            "With the advantage gae: 1 compares a token's value with all later rewards, 0 only"
            " with the next token's value."
        ),
    )
    value_learning_rate: NonNegativeFloat = Field(
        1e-3, description="With the advantage gae: learning rate of the value head."
    )
    value_clip: PositiveFloat = Field(
        0.5,
        description=(
            "With the advantage gae: clips value predictions to +- this around their value before"
            " the update."
        ),
    )
    value_coef: NonNegativeFloat = Field(
        0.0,
        description=(
            "With the advantage gae: weight of the value loss in the adapter's gradient. With 0"
            " the value loss trains only the value head."
        ),
    )


class PrimeSettings(SettingsGroup):
    """PRIME and its implicit reward model (verl: recipe/prime)."""

    prime_learning_rate: NonNegativeFloat = Field(
        1e-4, description="With the advantage prime: learning rate of the reward model's adapter."
    )
    prime_beta: PositiveFloat = Field(
        0.05,
        description=(
            "With the advantage prime: a token's reward is this times the log-ratio of reward"
            " model and reference."
        ),
    )
    prime_process_coef: PositiveFloat = Field(
        5.0, description="With the advantage prime: weight of the token rewards."
    )
    prime_outcome_coef: NonNegativeFloat = Field(
        5.0, description="With the advantage prime: weight of the rollout rewards."
    )


class UpdateSettings(OptimizerSettings, LossSettings, KlSettings):
    """Settings of one update of the policy; `learning_rate` is this step's."""

    temperature: float = 1.0
    """Of the distribution that the trajectories were sampled from."""
    seed: int
    """Of the shuffle and of dropout."""
    learned_advantage: GaeSettings | PrimeSettings | None = None
    """Of advantages that the update computes; None: the trajectories have theirs."""


GroupT = TypeVar("GroupT", bound=SettingsGroup)


def settings_of(config: BaseModel, group: type[GroupT], **others: object) -> GroupT:
    """The group's fields as `config` has them; `others` replace or add fields."""
    own = {name: getattr(config, name) for name in group.model_fields if hasattr(config, name)}
    return group.model_validate({**own, **others})

"""Fields of the configuration: when and how the policy is evaluated."""

from pydantic import BaseModel, Field

from producer.config.numbers import NonNegativeFloat, NonNegativeInt, PositiveInt


class EvaluationFields(BaseModel):
    """When and how the policy is evaluated."""

    eval_every: NonNegativeInt = Field(
        10, description="Steps between evaluations; 0: only after the last step."
    )
    eval_episodes: PositiveInt = Field(
        100, description="Episodes per evaluation, spread over its tasks."
    )
    eval_temperature: NonNegativeFloat = Field(
        0.0, description="Sampling temperature in evaluations; 0 is greedy."
    )
    skip_baseline: bool = Field(False, description="Do not evaluate before the first step.")
    baseline_only: bool = Field(False, description="Stop after the evaluation before step 1.")

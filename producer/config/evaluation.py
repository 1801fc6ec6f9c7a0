"""Fields of the configuration: when and how the policy is evaluated."""

from typing import NamedTuple

from pydantic import BaseModel, Field

from producer.numbers import NonNegativeFloat, NonNegativeInt, PositiveInt

SAMPLED_TEMPERATURE = 1.0
"""Temperature of the second evaluation."""


class EvaluationPass(NamedTuple):
    """One of the evaluations at a step."""

    temperature: float
    episodes: int


class EvaluationFields(BaseModel):
    """When and how the policy is evaluated."""

    eval_every: NonNegativeInt = Field(
        10, description="Steps between evaluations. 0: only after the last step."
    )
    eval_episodes: PositiveInt = Field(
        100, description="Episodes per evaluation, spread over its tasks."
    )
    eval_temperature: NonNegativeFloat = Field(
        0.0, description="Sampling temperature in evaluations; 0 is greedy."
    )
    eval_sampled_episodes: NonNegativeInt = Field(
        0,
        description="Episodes of a second evaluation, sampled at temperature 1. 0: none.",
    )
    skip_baseline: bool = Field(False, description="Do not evaluate before the first step.")
    baseline_only: bool = Field(
        False, description="Stop after the evaluation before the first step."
    )

    @property
    def num_baselines(self) -> int:
        """Evaluations before the first step."""
        return 0 if self.skip_baseline else len(self.evaluation_passes)

    @property
    def evaluation_passes(self) -> tuple[EvaluationPass, ...]:
        """The evaluations at a step: the main one, then the sampled one if there is any."""
        main = EvaluationPass(self.eval_temperature, self.eval_episodes)
        if not self.eval_sampled_episodes or self.eval_temperature == SAMPLED_TEMPERATURE:
            return (main,)
        return (main, EvaluationPass(SAMPLED_TEMPERATURE, self.eval_sampled_episodes))

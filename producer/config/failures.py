"""Fields of the configuration: what happens when a rollout fails."""

from typing import Literal

from pydantic import BaseModel, Field

from producer.numbers import PositiveInt


class FailureFields(BaseModel):
    """What happens when a rollout fails."""

    failure_policy: Literal["retry", "fail_fast", "min_viable_group"] = Field(
        "retry",
        description=(
            "When a rollout fails: retry with a new device, stop the run (fail_fast), or continue"
            " with the rest of its group (min_viable_group)."
        ),
    )
    max_attempts: PositiveInt = Field(3, description="Attempts per rollout with retry.")
    min_group_size: PositiveInt = Field(
        2, description="Scored rollouts that a group needs; with fewer it fails."
    )

"""Fields of the configuration: what is written beside the log."""

from typing import Annotated

from pydantic import BaseModel, Field

from producer.numbers import NonNegativeInt

Name = Annotated[str, Field(min_length=1, max_length=128)]


class ReportingFields(BaseModel):
    """What is written beside the log."""

    num_groups_to_log: NonNegativeInt = Field(
        1, description="Groups per step whose rollouts are written to the run's folder as text."
    )
    wandb_project: Name | None = Field(
        None, description="Mirror the training to this Weights & Biases project."
    )
    wandb_name: Name | None = Field(
        None, description="Name of the run there; needs --wandb-project."
    )

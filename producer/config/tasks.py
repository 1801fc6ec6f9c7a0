"""Fields of the configuration: what is asked, and of which device."""

from typing import Literal

from pydantic import BaseModel, Field, JsonValue

from producer.config.numbers import Seed


class TaskFields(BaseModel):
    """What is asked, and of which device."""

    tasks: JsonValue = Field(
        None, description="Training tasks: a task source or a list of task sources."
    )
    eval_tasks: JsonValue = Field(
        None, description="Evaluation tasks: a task source or a list of task sources."
    )
    box_type: Literal["android", "linux"] = Field("android", description="Type of device.")
    seed: Seed = Field(
        0, description="Seed of everything random: device states, sampling, weights."
    )

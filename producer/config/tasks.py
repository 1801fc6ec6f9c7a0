"""Fields of the configuration: what is asked, and of which device."""

from typing import Literal

from pydantic import BaseModel, Field, JsonValue

from producer.config.numbers import Seed
from producer.validators.judges import Judge

EnvironmentName = Literal["android", "linux", "dbbench", "text_to_sql"]
DEVICES = frozenset({"android", "linux"})
"""Environments with a screen."""


class TaskFields(BaseModel):
    """What is asked, and of which device."""

    tasks: JsonValue = Field(
        None, description="Training tasks: a task source or a list of task sources."
    )
    eval_tasks: JsonValue = Field(
        None, description="Evaluation tasks: a task source or a list of task sources."
    )
    judge: Judge | None = Field(
        None,
        description=(
            "Who judges custom tasks without a validator: agent (its own report), none (nobody; for"
            " evaluation tasks only), or the URL of an OpenAI-compatible endpoint."
        ),
    )
    judge_model: str | None = Field(
        None,
        min_length=1,
        description="Model that the judge's endpoint is asked for; none: the only one it lists.",
    )
    environment: EnvironmentName = Field(
        "android",
        description=(
            "What the agent works in: a phone (android), a desktop (linux), sessions with a"
            " database (dbbench), or questions to answer in SQL (text_to_sql)."
        ),
    )
    box_type: Literal["android", "linux"] = Field("android", description="Type of device.")
    seed: Seed = Field(
        0, description="Seed of everything random: device states, sampling, weights."
    )

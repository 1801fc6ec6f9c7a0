"""Fields of the configuration: tasks, their judge and the environment."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field, JsonValue

from producer.agents import AGENTS, DEFAULT_AGENT
from producer.numbers import Seed
from producer.sql_execution.mysql_url import parse_server_url
from producer.validators.judges import Judge

if TYPE_CHECKING:
    EnvironmentName = str
else:
    EnvironmentName = Literal[tuple(AGENTS)]


def _without_password(url: str) -> str:
    if parse_server_url(url).password:
        message = (
            "the URL must not contain a password, because it is recorded; set"
            " CUA_DBBENCH_PASSWORD instead"
        )
        raise ValueError(message)
    return url


ServerWithoutPassword = Annotated[str, AfterValidator(_without_password)]


class TaskFields(BaseModel):
    """Tasks, their judge and the environment."""

    tasks: JsonValue = Field(
        None, description="Training tasks: a task source or a list of task sources."
    )
    eval_tasks: JsonValue = Field(
        None, description="Evaluation tasks: a task source or a list of task sources."
    )
    judge: Judge | None = Field(
        None,
        description=(
            "Judge of custom tasks without a validator: agent (its own report), none (not judged;"
            " only for evaluation tasks), or the URL of an OpenAI-compatible endpoint."
        ),
    )
    judge_model: str | None = Field(
        None,
        min_length=1,
        description="Model name at the judge's endpoint.",
    )
    environment: EnvironmentName = Field(
        DEFAULT_AGENT,
        description=(
            "What the agent works in: "
            + ", ".join(f"{agent.description} ({name})" for name, agent in AGENTS.items())
            + "."
        ),
    )
    dbbench_database: ServerWithoutPassword | None = Field(
        None,
        description=(
            "MySQL or MariaDB server for sessions of dbbench, mysql://USER@HOST:PORT. USER must"
            " be allowed to create databases and users; the password is in CUA_DBBENCH_PASSWORD."
        ),
    )
    box_type: Literal["android"] = Field("android", description="Type of device.")
    seed: Seed = Field(0, description="Seed of all randomness: device states, sampling, weights.")

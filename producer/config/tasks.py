"""Fields of the configuration: what is asked, and of which device."""

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
            "the URL must not hold a password, because it is recorded; give it in the environment"
            " variable CUA_DBBENCH_PASSWORD"
        )
        raise ValueError(message)
    return url


ServerWithoutPassword = Annotated[str, AfterValidator(_without_password)]


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
            "Where sessions of dbbench have their databases: mysql://USER@HOST:PORT of a MySQL or"
            " MariaDB server whose USER may create databases and users; the password is in"
            " CUA_DBBENCH_PASSWORD. None: SQLite in this process's own children."
        ),
    )
    box_type: Literal["android"] = Field("android", description="Type of device.")
    seed: Seed = Field(
        0, description="Seed of everything random: device states, sampling, weights."
    )

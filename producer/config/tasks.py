"""Fields of the configuration: tasks, their environment, their episodes and what those cost."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue

from producer.agents import AGENTS, DEFAULT_AGENT, OTHER_SPELLINGS
from producer.agents.environment_server import ActionsName, check_server_urls, check_size
from producer.algorithms.settings import SettingsGroup
from producer.config.reward import REWARD_NAMES, check_reward_name
from producer.numbers import (
    FiniteFloat,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    Seed,
    check_distinct,
    read_names,
    read_none,
)
from producer.rewards.named import CORRECT, INCORRECT, TIMEOUT
from producer.sql_execution.mysql_admin import parse_server_url
from producer.validators.judges import Judge


def _spellings(name: str) -> str:
    others = (other for other, meant in OTHER_SPELLINGS.items() if meant == name)
    return " or ".join([name, *others])


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


def _check_serials(serials: tuple[str, ...]) -> tuple[str, ...]:
    return check_distinct(serials, "phone", "serials", "a phone has one episode at a time")


Serials = Annotated[
    tuple[str, ...],
    BeforeValidator(lambda given: read_names(given, ",")),
    AfterValidator(_check_serials),
]
AdbAddress = Annotated[str, Field(pattern=r"^[^\s:/]+:[0-9]{1,5}$")]


class TaskFields(SettingsGroup):
    """Tasks, their judge and the environment."""

    tasks: JsonValue = None
    """Training tasks: a file, or one or more task sources."""
    eval_tasks: JsonValue = None
    """Evaluation tasks: a file, or one or more task sources."""
    judge: Judge | None = None
    """Judge of custom tasks without a validator: agent (its own report), none (not judged; only for
    evaluation tasks), or the URL of an OpenAI-compatible endpoint."""
    judge_model: str | None = Field(None, min_length=1)
    """Model name at the judge's endpoint."""
    environment: EnvironmentName = Field(
        DEFAULT_AGENT,
        description=(
            "What the agent works in: "
            + ", ".join(
                f"{agent.description} ({_spellings(name)})" for name, agent in AGENTS.items()
            )
            + "."
        ),
    )
    dbbench_database: ServerWithoutPassword | None = None
    """MySQL or MariaDB server for sessions of dbbench, mysql://USER@HOST:PORT. USER must be allowed
    to create databases and users; the password is in CUA_DBBENCH_PASSWORD."""
    env_url: Annotated[str, AfterValidator(check_server_urls)] | None = None
    """OpenEnv servers, such as ws://HOST:PORT, which give observations and rewards; each episode is
    on the first one that has room. A token is in CUA_OPENENV_TOKEN."""
    env_actions: ActionsName = "computer"
    """How these servers are sent actions: computer, as JSON; browsergym, as its calls; or what the
    policy writes, as the field message (text), action_str, answer or code."""
    env_screen: Annotated[str, AfterValidator(check_size)] | None = None
    """Size of these servers' screenshots in pixels, WIDTHxHEIGHT."""
    adb_serials: Serials | None = None
    """With the environment adb: serials of phones and emulators, as `adb devices` shows them,
    separated by commas. Each has one episode at a time."""
    adb_server: AdbAddress = "127.0.0.1:5037"
    """With the environment adb: HOST:PORT of the adb server."""
    box_type: Literal["android", "linux"] = "android"
    """Type of device; linux only with the environment gbox."""
    seed: Seed = 0
    """Seed of all randomness: device states, sampling, weights."""


class EpisodeFields(SettingsGroup):
    """How long episodes last, how many run, what they cost."""

    max_turns: PositiveInt = 20
    """Turns per episode; a task may set a lower limit."""
    max_recent_turns: Annotated[PositiveInt | None, BeforeValidator(read_none)] = 5
    """Past turns in the prompt. With N it shows N to 2N-1 turns; the oldest N are dropped together,
    which keeps the turns one training sequence. none: all of them."""
    step_completions: NonNegativeInt = 0
    """Text-to-SQL: label each step of a completion with the share of correct ones among this many
    completions of its prefix (Monte Carlo). 0: no labels."""
    max_concurrent_rollouts: PositiveInt = 8
    """Episodes that run at the same time, over all groups."""
    rollouts_by: Literal["trainer", "workers"] = "trainer"
    """Who runs the episodes: this process, or `cua-train worker` on any hosts, which get them
    through Kafka and sample from the servers of base_url."""
    max_task_time_seconds: PositiveFloat = 1800.0
    """Time limit of an episode's actions on its device, without the policy's own time. At the limit
    the episode ends and is judged."""
    max_turn_time_seconds: PositiveFloat = 300.0
    """Time limit of one call to the device or to your own reward. At the limit the attempt
    fails."""
    validate_every_turn: bool = True
    """Run the validator after every turn to record turn_first_success. Costs one device query per
    turn."""
    reward: Annotated[str, AfterValidator(check_reward_name)] = Field(
        "binary",
        description=(
            f"{', '.join(REWARD_NAMES)}, or a function of your own, package.module:function, that"
            " takes an episode's Outcome and returns a number."
        ),
    )
    reward_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    """sha256 of the file of your own reward function. Recorded: the training continues only with
    the same file."""
    reward_correct: FiniteFloat = CORRECT
    """With the reward dbbench: reward of a completed session with the right result."""
    reward_incorrect: FiniteFloat = INCORRECT
    """With the reward dbbench: reward of any other session."""
    reward_timeout: FiniteFloat = TIMEOUT
    """With the reward dbbench: reward of a session that ran out of rounds."""
    turn_cost: NonNegativeFloat = 0.0
    """Reward subtracted for each turn."""
    parse_error_cost: NonNegativeFloat = 0.0
    """Reward subtracted for each action that cannot be parsed."""


class FailureFields(SettingsGroup):
    """What happens when a rollout fails."""

    failure_policy: Literal["retry", "fail_fast", "min_viable_group"] = "retry"
    """When a rollout fails: retry on a new device, stop the run (fail_fast), or continue with the
    rest of its group (min_viable_group)."""
    max_attempts: PositiveInt = 3
    """Attempts per rollout, with failure_policy retry."""
    min_group_size: PositiveInt = 2
    """Scored rollouts that a group needs; a group with fewer fails."""

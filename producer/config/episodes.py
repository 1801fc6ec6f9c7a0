"""Fields of the configuration: length, number, cost and failures of episodes."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from producer.config.reward import REWARD_NAMES, check_reward_name
from producer.numbers import (
    FiniteFloat,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    read_none,
)
from producer.rewards.named import CORRECT, INCORRECT, TIMEOUT


class EpisodeFields(BaseModel):
    """How long episodes last, how many run, what they cost."""

    max_turns: PositiveInt = Field(
        20, description="Turns per episode; a task may set a lower limit."
    )
    max_recent_turns: Annotated[PositiveInt | None, BeforeValidator(read_none)] = Field(
        5,
        description=(
            "Past turns in the prompt. With N it shows N to 2N-1 turns; the oldest N are dropped"
            " together, which keeps the turns one training sequence. none: all of them."
        ),
    )
    step_completions: NonNegativeInt = Field(
        0,
        description=(
            "Text-to-SQL: label each step of a completion with the share of correct ones among"
            " this many completions of its prefix (Monte Carlo). 0: no labels."
        ),
    )
    max_concurrent_rollouts: PositiveInt = Field(
        8, description="Episodes that run at the same time, over all groups."
    )
    max_task_time_seconds: PositiveFloat = Field(
        1800.0,
        description=(
            "Time limit of an episode's actions on its device, without the policy's own time. At"
            " the limit the episode ends and is judged."
        ),
    )
    max_turn_time_seconds: PositiveFloat = Field(
        300.0,
        description=(
            "Time limit of one call to the device or to your own reward. At the limit the attempt"
            " fails."
        ),
    )
    validate_every_turn: bool = Field(
        True,
        description=(
            "Run the validator after every turn to record turn_first_success. Costs one device"
            " query per turn."
        ),
    )
    reward: Annotated[str, AfterValidator(check_reward_name)] = Field(
        "binary",
        description=(
            f"{', '.join(REWARD_NAMES)}, or a function of your own, package.module:function, that"
            " takes an episode's Outcome and returns a number."
        ),
    )
    reward_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = Field(
        None,
        description=(
            "sha256 of the file of your own reward function. Recorded: the training continues"
            " only with the same file."
        ),
    )
    reward_correct: FiniteFloat = Field(
        CORRECT,
        description=(
            "With the reward dbbench: reward of a completed session with the right result."
        ),
    )
    reward_incorrect: FiniteFloat = Field(
        INCORRECT, description="With the reward dbbench: reward of any other session."
    )
    reward_timeout: FiniteFloat = Field(
        TIMEOUT, description="With the reward dbbench: reward of a session that ran out of rounds."
    )
    turn_cost: NonNegativeFloat = Field(0.0, description="Reward subtracted for each turn.")
    parse_error_cost: NonNegativeFloat = Field(
        0.0, description="Reward subtracted for each action that cannot be parsed."
    )


class FailureFields(BaseModel):
    """What happens when a rollout fails."""

    failure_policy: Literal["retry", "fail_fast", "min_viable_group"] = Field(
        "retry",
        description=(
            "When a rollout fails: retry on a new device, stop the run (fail_fast), or continue"
            " with the rest of its group (min_viable_group)."
        ),
    )
    max_attempts: PositiveInt = Field(
        3, description="Attempts per rollout, with failure_policy retry."
    )
    min_group_size: PositiveInt = Field(
        2, description="Scored rollouts that a group needs; a group with fewer fails."
    )

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
            "Past turns that the policy sees beside the instruction and the screen: at least so"
            " many and fewer than twice as many, because older ones are dropped in blocks, so that"
            " turns stay one training sequence. none: all of them."
        ),
    )
    step_completions: NonNegativeInt = Field(
        0,
        description=(
            "Text-to-SQL: label each step of a completion by the share of so many completions of"
            " its prefix that are right (Monte Carlo), recorded with the rollout; 0: no labels."
        ),
    )
    max_concurrent_rollouts: PositiveInt = Field(
        8, description="Episodes that run at the same time, over all groups."
    )
    max_task_time_seconds: PositiveFloat = Field(
        1800.0,
        description=(
            "Time limit of an episode's actions on its device; reaching it ends the episode, which"
            " is then judged. The time that the policy takes does not count."
        ),
    )
    max_turn_time_seconds: PositiveFloat = Field(
        300.0,
        description=(
            "Time limit of one call to the device, or to a reward of your own; reaching it fails"
            " the attempt."
        ),
    )
    validate_every_turn: bool = Field(
        True,
        description=(
            "Ask the validator after every turn, which fills turn_first_success: one more query of"
            " the device per turn."
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
            "sha256 of the file of your own reward function; recorded, so that the training"
            " continues with the same function only."
        ),
    )
    reward_correct: FiniteFloat = Field(
        CORRECT, description="With the reward dbbench: of a session that is right and completed."
    )
    reward_incorrect: FiniteFloat = Field(
        INCORRECT, description="With the reward dbbench: of any other session."
    )
    reward_timeout: FiniteFloat = Field(
        TIMEOUT, description="With the reward dbbench: of a session that reached its last round."
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
            "When a rollout fails: retry with a new device, stop the run (fail_fast), or continue"
            " with the rest of its group (min_viable_group)."
        ),
    )
    max_attempts: PositiveInt = Field(3, description="Attempts per rollout with retry.")
    min_group_size: PositiveInt = Field(
        2, description="Scored rollouts that a group needs; with fewer it fails."
    )

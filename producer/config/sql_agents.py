"""Fields of the configuration for agents that write SQL: rewards of steps, skills in turn."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from producer.algorithms.settings import SettingsGroup
from producer.numbers import NonNegativeFloat, PositiveInt, check_distinct, read_names


class ProcessRewardFields(SettingsGroup):
    """Rewards of a completion's steps, and what becomes of them."""

    process_reward_model: Path | None = None
    """Score the steps of every completion with this model, a folder that `cua-train sql
    reward-model` wrote."""
    rm_coef: NonNegativeFloat = 1.0
    """With a process_reward_model: weight of its scores in token rewards."""
    reward_model_sees_results: bool = False
    """With a process_reward_model: execute each step and show the model the result as a comment.
    For models that were trained on such steps."""
    verifier_coef: NonNegativeFloat = 1.0
    """With a core_function: weight of the outcome in token rewards."""
    core_function: str | None = Field(None, min_length=1)
    """Token advantages in place of `advantage`: a function from docs/token_advantages.md (such as
    compute_grpo_process_advantage_avg_unique) or from core_algos."""
    core_algos: str | None = Field(None, min_length=1)
    """Your own file or module, searched first for the core_function."""
    core_algos_sha256: str | None = Field(None, pattern=r"^[0-9a-f]{64}$")
    """sha256 of the file of core_algos. Recorded: the training continues only with the same
    file."""
    reward_module: str | None = Field(None, min_length=1)
    """Your own file or module that registers a reward function, a reward manager, or both
    (docs/text_to_sql.md)."""
    reward_module_sha256: str | None = Field(None, pattern=r"^[0-9a-f]{64}$")
    """sha256 of the file of reward_module. Recorded: the training continues only with the same
    file."""
    reward_function: str | None = Field(None, min_length=1)
    """Registered function for a completion's outcome, in place of its executed rows."""
    reward_manager: str | None = Field(None, min_length=1)
    """Registered manager for token rewards."""
    reward_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Passed as `port` to your own reward function or manager, for a service that it calls."""


def _check_skills(skills: tuple[str, ...]) -> tuple[str, ...]:
    return check_distinct(skills, "skill", "some", "each skill is trained once")


SkillSequence = Annotated[
    tuple[str, ...],
    BeforeValidator(lambda given: read_names(given, ",")),
    AfterValidator(_check_skills),
]


class ContinualFields(SettingsGroup):
    """Skills trained one after another."""

    skill_sequence: SkillSequence | None = None
    """Train these skills one after another: select,insert,delete. After each, success is measured
    on every skill of the evaluation tasks."""
    steps_per_skill: PositiveInt = 20
    """Training steps of each skill."""
    replay_share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of training tasks drawn from earlier skills."""


def num_steps_of(config: ContinualFields) -> int:
    """Steps of the whole sequence; 0 without one."""
    return len(config.skill_sequence or ()) * config.steps_per_skill

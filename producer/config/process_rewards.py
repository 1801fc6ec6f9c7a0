"""Fields of the configuration: rewards and advantages of single tokens (text-to-SQL)."""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from producer.config.reward import same_sha256
from producer.numbers import NonNegativeFloat
from producer.process_rewards.user_module import load_user_module, source_sha256


class ProcessRewardFields(BaseModel):
    """Rewards of a completion's steps, and what becomes of them."""

    process_reward_model: Path | None = Field(
        None,
        description=(
            "Score the steps of every completion with this model, a folder that `cua-train sql"
            " reward-model` wrote."
        ),
    )
    rm_coef: NonNegativeFloat = Field(
        1.0, description="With a process_reward_model: weight of its scores in token rewards."
    )
    reward_model_sees_results: bool = Field(
        False,
        description=(
            "With a process_reward_model: execute each step and show the model the result as a"
            " comment. For models that were trained on such steps."
        ),
    )
    verifier_coef: NonNegativeFloat = Field(
        1.0, description="With a core_function: weight of the outcome in token rewards."
    )
    core_function: str | None = Field(
        None,
        min_length=1,
        description=(
            "Token advantages in place of `advantage`: a function from docs/token_advantages.md"
            " (such as compute_grpo_process_advantage_avg_unique) or from core_algos."
        ),
    )
    core_algos: str | None = Field(
        None,
        min_length=1,
        description="Your own file or module, searched first for the core_function.",
    )
    core_algos_sha256: str | None = Field(
        None,
        pattern=r"^[0-9a-f]{64}$",
        description=(
            "sha256 of the file of core_algos. Recorded: the training continues only with the"
            " same file."
        ),
    )
    reward_module: str | None = Field(
        None,
        min_length=1,
        description=(
            "Your own file or module that registers a reward function, a reward manager, or both"
            " (docs/text_to_sql.md)."
        ),
    )
    reward_module_sha256: str | None = Field(
        None,
        pattern=r"^[0-9a-f]{64}$",
        description=(
            "sha256 of the file of reward_module. Recorded: the training continues only with the"
            " same file."
        ),
    )
    reward_function: str | None = Field(
        None,
        min_length=1,
        description=(
            "Registered function for a completion's outcome, in place of its executed rows."
        ),
    )
    reward_manager: str | None = Field(
        None,
        min_length=1,
        description="Registered manager for token rewards.",
    )
    reward_port: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        None,
        description=(
            "Passed as `port` to your own reward function or manager, for a service that it calls."
        ),
    )


def module_hash(field: str, name: str | None, expected: str | None) -> str | None:
    """The hash of a user's module, None without one. ValueError if it has changed."""
    if name is None:
        return None
    try:
        found = source_sha256(load_user_module(name))
    except ValueError as error:
        message = f"{field}: {error}"
        raise ValueError(message) from error
    return same_sha256(field, name, found, expected)

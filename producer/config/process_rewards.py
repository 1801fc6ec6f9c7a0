"""Fields of the configuration: rewards and advantages of single tokens (text-to-SQL)."""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

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
        1.0, description="With a process_reward_model: weight of its scores in a token's reward."
    )
    reward_model_sees_results: bool = Field(
        False,
        description=(
            "With a process_reward_model: execute each step, and give the model its result as a"
            " comment below it. Of use to a model that was trained on such steps."
        ),
    )
    verifier_coef: NonNegativeFloat = Field(
        1.0, description="With a core_function: weight of the outcome in a token's reward."
    )
    core_function: str | None = Field(
        None,
        min_length=1,
        description=(
            "Advantages of tokens in place of `advantage`: a function of docs/token_advantages.md"
            " (such as compute_grpo_process_advantage_avg_unique) or of core_algos."
        ),
    )
    core_algos: str | None = Field(
        None,
        min_length=1,
        description="File or module of yours that is searched for the core_function first.",
    )
    core_algos_sha256: str | None = Field(
        None,
        pattern=r"^[0-9a-f]{64}$",
        description=(
            "sha256 of the file of core_algos; recorded, so that the training continues with the"
            " same functions only."
        ),
    )
    reward_module: str | None = Field(
        None,
        min_length=1,
        description=(
            "File or module of yours that registers a reward function, a reward manager, or both"
            " (docs/text_to_sql.md)."
        ),
    )
    reward_module_sha256: str | None = Field(
        None,
        pattern=r"^[0-9a-f]{64}$",
        description=(
            "sha256 of the file of reward_module; recorded, so that the training continues with the"
            " same rewards only."
        ),
    )
    reward_function: str | None = Field(
        None,
        min_length=1,
        description=(
            "Outcome of a completion in place of its executed rows: a registered function; without"
            " it the one that reward_module registers."
        ),
    )
    reward_manager: str | None = Field(
        None,
        min_length=1,
        description=(
            "Rewards of a completion's tokens: a registered manager; without it the one that"
            " reward_module registers."
        ),
    )
    reward_port: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        None,
        description=(
            "Passed as `port` to a reward function or manager of yours, which may ask a service"
            " there."
        ),
    )


def module_hash(field: str, name: str | None, expected: str | None) -> str | None:
    """The hash to record of a user's module; None without one. ValueError if it has changed."""
    if name is None:
        return None
    try:
        found = source_sha256(load_user_module(name))
    except ValueError as error:
        message = f"{field}: {error}"
        raise ValueError(message) from error
    if expected not in {None, found}:
        message = (
            f"{field}_sha256: {name} has changed, from sha256 {expected} to {found}; restore it,"
            " or begin a new training"
        )
        raise ValueError(message)
    return found

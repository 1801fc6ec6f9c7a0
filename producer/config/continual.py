"""Fields of the configuration: skills trained one after another, and past sessions shown again."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from producer.numbers import PositiveInt, read_names


def _check_skills(skills: tuple[str, ...]) -> tuple[str, ...]:
    if not skills or not all(skills):
        message = "names no skill; give some, separated by commas"
        raise ValueError(message)
    if repeated := sorted({skill for skill in skills if skills.count(skill) > 1}):
        message = f"{', '.join(repeated)} given twice; each skill is trained once"
        raise ValueError(message)
    return skills


SkillSequence = Annotated[
    tuple[str, ...],
    BeforeValidator(lambda given: read_names(given, ",")),
    AfterValidator(_check_skills),
]


class ContinualFields(BaseModel):
    """Skills trained one after another, and past sessions shown again."""

    skill_sequence: SkillSequence | None = Field(
        None,
        description=(
            "Train these skills one after another: select,insert,delete. After each, success is"
            " measured on every skill of the evaluation tasks."
        ),
    )
    steps_per_skill: PositiveInt = Field(20, description="Training steps of each skill.")
    replay_share: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.0, description="Share of training tasks drawn from earlier skills."
    )
    replay_sessions: Annotated[int, Field(ge=0, le=256)] = Field(
        0,
        description=(
            "Number of past sessions in every first prompt: the newest correct ones of the"
            " training."
        ),
    )


def num_steps_of(config: ContinualFields) -> int:
    """Steps of the whole sequence; 0 without one."""
    return len(config.skill_sequence or ()) * config.steps_per_skill

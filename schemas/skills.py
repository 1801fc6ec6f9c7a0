"""The event of success by skill after an evaluation; stream of its training."""

from typing import Annotated, ClassVar

from pydantic import Field

from schemas.base import Count, Id, Items, KeyText, Payload, UtcTime, Value


class SkillSuccess(Value):
    """Success on the entries that need a skill."""

    skill: KeyText
    """Name of the skill; `all`: of every entry once."""
    num_sessions: Count
    """Scored sessions whose entry needs it."""
    num_correct: Count
    """Of those, right ones."""
    success_rate: Annotated[float, Field(ge=0, le=1)]
    """num_correct / num_sessions."""


class SkillsMeasured(Payload):
    """An evaluation's success by skill."""

    TYPE: ClassVar[str] = "cua.training.skills_measured"

    evaluation_id: Id
    """The eval or baseline."""
    generation: Count
    """Generation of the training."""
    step: Count
    """Finished steps; 0: before the first."""
    stage: Count | None = None
    """Continual learning: number of skills trained so far; None: skills are not trained in turn."""
    trained_skill: str | None = None
    """Continual learning: the skill trained last; None: none yet, or not in turn."""
    skills: Items[SkillSuccess]
    """By name; of skills with at least one session."""
    measured_at: UtcTime
    """When the evaluation had ended."""

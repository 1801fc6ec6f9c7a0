"""Success by skill: a row for each skill of an evaluation, of its training's stream."""

from collections.abc import Sequence
from uuid import UUID

from consumers.fold.projectors.projector import EventContext
from consumers.fold.rows import Insert, Operation
from schemas.base import Payload
from schemas.ids import skill_success_id
from schemas.skills import SkillsMeasured


class SkillsProjector:
    """SkillsMeasured."""

    def project(self, payload: Payload, context: EventContext) -> Sequence[Operation]:
        """One row for each skill."""
        assert isinstance(payload, SkillsMeasured)  # noqa: S101  # the registry names the class
        operations = []
        for skill in payload.skills:
            key = skill_success_id(UUID(context.owner), payload.evaluation_id, skill.skill)
            operations.append(
                Insert(
                    "skill_success",
                    {
                        "id": key,
                        "training_id": context.owner,
                        "evaluation_id": payload.evaluation_id,
                        "generation": payload.generation,
                        "step": payload.step,
                        "stage": payload.stage,
                        "trained_skill": payload.trained_skill,
                        "skill": skill.skill,
                        "num_sessions": skill.num_sessions,
                        "num_correct": skill.num_correct,
                        "success_rate": skill.success_rate,
                        "measured_at": payload.measured_at,
                        "created_at": context.time,
                    },
                )
            )
        return operations

"""What a training states of its success by skill after an evaluation."""

from producer.resume.resume_state import EvaluationSummary
from producer.training.evaluation import EvaluationPlan
from producer.training.session import Session
from schemas.skills import SkillsMeasured, SkillSuccess


def skills_measured(
    session: Session, plan: EvaluationPlan, summary: EvaluationSummary
) -> SkillsMeasured | None:
    """What the training states of an evaluation; None where there are no skills, or it did."""
    by_skill = summary.by_skill
    stated = session.history.payloads_of(session.stream.subject)
    if not by_skill or any(
        isinstance(item, SkillsMeasured) and item.evaluation_id == plan.id for item in stated
    ):
        return None
    config, step = session.config, plan.step or 0
    stage = skill = None
    if config.skill_sequence is not None:
        done, part = divmod(step, config.steps_per_skill)
        stage = None if part else done
        trained = config.skill_sequence[: done + bool(part)]
        skill = trained[-1] if trained else None
    return SkillsMeasured(
        evaluation_id=plan.id,
        generation=session.generation,
        step=step,
        stage=stage,
        trained_skill=skill,
        skills=tuple(
            SkillSuccess(
                skill=name, num_sessions=total, num_correct=right, success_rate=right / total
            )
            for name, (total, right) in sorted(by_skill.items())
        ),
        measured_at=session.clock(),
    )

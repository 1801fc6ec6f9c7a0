"""Success by skill, and what training skills in turn did to the others."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from consumers.tables import Baseline, Eval, SkillSuccess

ALL = "all"
"""The row of every entry once."""


class SkillMatrix(NamedTuple):
    """Success on every skill after each stage of training skills in turn (continual learning)."""

    stages: tuple[int, ...]
    """Rising; stage n is after n skills were trained."""
    trained: dict[int, str]
    """Stage -> the skill that it trained; stage 0 trained none."""
    skills: tuple[str, ...]
    """In the order of their training, then the others by name; without `all`."""
    rates: dict[tuple[int, str], float]
    """(stage, skill) -> success rate; a skill that was not measured is missing."""

    def forgetting(self, skill: str) -> float | None:
        """Its best rate before the last stage minus its last; None: one of them is missing.

        None too for the skill that the last stage trained, which nothing came after.
        """
        last = self.rates.get((self.stages[-1], skill)) if self.stages else None
        before = [
            self.rates[stage, skill] for stage in self.stages[:-1] if (stage, skill) in self.rates
        ]
        if last is None or not before or self._is_trained_last(skill):
            return None
        return max(before) - last

    def backward_transfer(self, skill: str) -> float | None:
        """Its last rate minus that just after it was trained; None: not trained before the last."""
        learnt = [stage for stage in self.stages if self.trained.get(stage) == skill]
        if not learnt or self._is_trained_last(skill):
            return None
        first, last = (self.rates.get((stage, skill)) for stage in (learnt[-1], self.stages[-1]))
        return None if first is None or last is None else last - first

    @property
    def average_forgetting(self) -> float | None:
        """Mean of `forgetting` over the skills that were trained before the last stage."""
        return _mean([self.forgetting(skill) for skill in self._earlier()])

    @property
    def average_backward_transfer(self) -> float | None:
        """Mean of `backward_transfer` over the skills that were trained before the last stage."""
        return _mean([self.backward_transfer(skill) for skill in self._earlier()])

    def _earlier(self) -> list[str]:
        return [
            skill
            for skill in dict.fromkeys(self.trained.values())
            if not self._is_trained_last(skill)
        ]

    def _is_trained_last(self, skill: str) -> bool:
        return bool(self.stages) and self.trained.get(self.stages[-1]) == skill


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def success_by_skill(
    session: Session,
    training_id: UUID,
    *,
    skill: str | None = None,
    generation: int | None = None,
) -> Sequence[SkillSuccess]:
    """Success by skill after each evaluation, by step, time and skill; `all` is one of the skills.

    Without `generation` evaluations that a newer generation makes again are left out.
    """
    query = (
        select(SkillSuccess)
        .outerjoin(Eval, Eval.id == SkillSuccess.evaluation_id)
        .outerjoin(Baseline, Baseline.id == SkillSuccess.evaluation_id)
        .where(SkillSuccess.training_id == training_id)
    )
    if generation is None:
        query = query.where(~func.coalesce(Eval.superseded, Baseline.superseded, False))  # SQL's
    else:
        query = query.where(SkillSuccess.generation == generation)
    if skill is not None:
        query = query.where(SkillSuccess.skill == skill)
    order = (SkillSuccess.step, SkillSuccess.measured_at, SkillSuccess.skill, SkillSuccess.id)
    return session.scalars(query.order_by(*order)).all()


def skill_matrix(rows: Sequence[SkillSuccess]) -> SkillMatrix | None:
    """The matrix of one training's rows in their order; None: no row belongs to a stage.

    Of several evaluations in a stage the last counts.
    """
    trained: dict[int, str] = {}
    rates: dict[tuple[int, str], float] = {}
    for row in rows:
        if row.stage is None:
            continue
        if row.trained_skill is not None:
            trained[row.stage] = row.trained_skill
        if row.skill != ALL:
            rates[row.stage, row.skill] = row.success_rate
    if not rates:
        return None
    stages = tuple(sorted({stage for stage, _ in rates}))
    in_turn = [trained[stage] for stage in sorted(trained)]
    others = sorted({skill for _, skill in rates})
    skills = tuple(dict.fromkeys([item for item in [*in_turn, *others] if item in others]))
    return SkillMatrix(stages, trained, skills, rates)

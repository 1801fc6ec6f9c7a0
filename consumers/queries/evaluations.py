"""Baselines and evals."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from consumers.tables import Baseline, Eval


def list_baselines_by_training(
    session: Session, training_id: UUID, generation: int | None = None
) -> Sequence[Baseline]:
    """Evaluations before the first step, oldest first."""
    query = (
        select(Baseline)
        .where(Baseline.training_id == training_id)
        .order_by(Baseline.created_at, Baseline.id)
    )
    query = (
        query.where(~Baseline.superseded)
        if generation is None
        else query.where(Baseline.generation == generation)
    )
    return session.scalars(query).all()


def list_evals_by_training(
    session: Session, training_id: UUID, generation: int | None = None
) -> Sequence[Eval]:
    """Scheduled and manual evaluations, by step."""
    query = (
        select(Eval)
        .where(Eval.training_id == training_id)
        .order_by(Eval.step, Eval.created_at, Eval.id)
    )
    query = (
        query.where(~Eval.superseded)
        if generation is None
        else query.where(Eval.generation == generation)
    )
    return session.scalars(query).all()


def get_eval_by_training_and_step(
    session: Session, training_id: UUID, step: int, generation: int | None = None
) -> Eval | None:
    """The scheduled evaluation after step `step`: of two the one of lower temperature."""
    query = select(Eval).where(
        Eval.training_id == training_id, Eval.step == step, Eval.kind == "scheduled"
    )
    query = (
        query.where(~Eval.superseded)
        if generation is None
        else query.where(Eval.generation == generation)
    )
    order = (Eval.generation.desc(), Eval.temperature.nulls_first())
    return session.scalar(query.order_by(*order).limit(1))

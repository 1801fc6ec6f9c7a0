"""Trainings and their steps."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import Session, aliased

from consumers.tables import Annotation, Step, Training

_NEWEST = (
    select(Annotation)
    .ext(distinct_on(Annotation.training_id))
    .order_by(Annotation.training_id, Annotation.epoch.desc(), Annotation.sequence.desc())
)
"""The annotation of each training that counts."""


def get_training(session: Session, training_id: UUID) -> Training | None:
    """The training with this row id."""
    return session.get(Training, training_id)


def get_training_by_run_name(session: Session, run_name: str) -> Training | None:
    """The training named `run_name` (the command line's --training-name)."""
    return session.scalar(select(Training).where(Training.run_name == run_name))


def get_annotation(session: Session, training_id: UUID) -> Annotation | None:
    """The training's display name, tags and note, as stated last; None: there is none."""
    return session.scalar(_NEWEST.where(Annotation.training_id == training_id))


def list_annotations(
    session: Session, trainings: Sequence[UUID] | None = None
) -> Sequence[Annotation]:
    """What `get_annotation` returns, of every training that has one, or of these."""
    query = _NEWEST if trainings is None else _NEWEST.where(Annotation.training_id.in_(trainings))
    return session.scalars(query).all()


def list_trainings(
    session: Session,
    status: str | None = None,
    *,
    include_hidden: bool = False,
    limit: int | None = None,
) -> Sequence[Training]:
    """Trainings, newest first; with `status`, only those. Hidden ones only where asked for.

    `limit`: at most so many.
    """
    query = select(Training).order_by(Training.created_at.desc(), Training.id).limit(limit)
    if not include_hidden:
        newest = aliased(Annotation, _NEWEST.subquery())
        hidden = select(newest.training_id).where(newest.hidden)
        query = query.where(Training.id.not_in(hidden))
    if status is not None:
        query = query.where(Training.status == status)
    return session.scalars(query).all()


def list_steps_by_training(
    session: Session, training_id: UUID, generation: int | None = None
) -> Sequence[Step]:
    """Steps by number: of one generation, or those that no newer generation trains again."""
    query = select(Step).where(Step.training_id == training_id).order_by(Step.step, Step.generation)
    query = (
        query.where(~Step.superseded)
        if generation is None
        else query.where(Step.generation == generation)
    )
    return session.scalars(query).all()


def get_step_by_training_and_step(
    session: Session, training_id: UUID, step: int, generation: int | None = None
) -> Step | None:
    """Step number `step` (from 1)."""
    query = (
        select(Step)
        .where(Step.training_id == training_id, Step.step == step)
        .order_by(Step.generation.desc())
        .limit(1)
    )
    query = (
        query.where(~Step.superseded)
        if generation is None
        else query.where(Step.generation == generation)
    )
    return session.scalar(query)


def get_latest_completed_step(session: Session, training_id: UUID) -> Step | None:
    """The completed step with the highest number; None before the first."""
    query = select(Step).where(
        Step.training_id == training_id, Step.status == "completed", ~Step.superseded
    )
    return session.scalar(query.order_by(Step.step.desc(), Step.generation.desc()).limit(1))

"""Tasks and their validators."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from consumers.tables import Rollout, Task, Validator


def get_task(session: Session, task_id: UUID) -> Task | None:
    """The definition with this row id."""
    return session.get(Task, task_id)


def get_task_by_task_id(session: Session, task_id: str) -> Task | None:
    """The latest definition with the text id `task_id`."""
    query = (
        select(Task)
        .where(Task.task_id == task_id)
        .order_by(Task.updated_at.desc(), Task.created_at.desc(), Task.id)
    )
    return session.scalar(query.limit(1))


def list_tasks(
    session: Session,
    *,
    category: str | None = None,
    difficulty: str | None = None,
    source_type: str | None = None,
    training: UUID | None = None,
) -> Sequence[Task]:
    """Every definition that matches the filters, by text id; the latest first within one id.

    `training`: row id of a training; only tasks that its rollouts tried.
    """
    query = select(Task).order_by(Task.task_id, Task.updated_at.desc(), Task.id)
    for column, wanted in (
        (Task.category, category),
        (Task.difficulty, difficulty),
        (Task.source_type, source_type),
    ):
        if wanted is not None:
            query = query.where(column == wanted)
    if training is not None:
        tried = select(Rollout.task_id).where(Rollout.training_id == training)
        query = query.where(Task.id.in_(tried))
    return session.scalars(query).all()


def list_validators_by_task(session: Session, task_id: UUID) -> Sequence[Validator]:
    """Validators of the definition with this row id, oldest first."""
    return session.scalars(
        select(Validator)
        .where(Validator.task_id == task_id)
        .order_by(Validator.created_at, Validator.id)
    ).all()

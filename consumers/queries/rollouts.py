"""Groups, rollouts, turns, actions, observations, validations and environments."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from consumers.tables import Action, Environment, Group, Obs, Rollout, Turn, Validation


def _groups(session: Session, condition: ColumnElement[bool]) -> Sequence[Group]:
    return session.scalars(select(Group).where(condition).order_by(Group.group_num, Group.id)).all()


def list_groups_by_step(session: Session, step_id: UUID) -> Sequence[Group]:
    """Groups of a step by number."""
    return _groups(session, Group.step_id == step_id)


def list_groups_by_eval(session: Session, eval_id: UUID) -> Sequence[Group]:
    """Groups of an eval by number."""
    return _groups(session, Group.eval_id == eval_id)


def list_groups_by_baseline(session: Session, baseline_id: UUID) -> Sequence[Group]:
    """Groups of a baseline by number."""
    return _groups(session, Group.baseline_id == baseline_id)


def _rollouts(session: Session, condition: ColumnElement[bool]) -> Sequence[Rollout]:
    order = (Rollout.group_num, Rollout.env_index, Rollout.attempt, Rollout.created_at, Rollout.id)
    return session.scalars(select(Rollout).where(condition).order_by(*order)).all()


def get_rollout_by_rollout_id(session: Session, rollout_id: str) -> Rollout | None:
    """The rollout with this text id."""
    return session.scalar(select(Rollout).where(Rollout.rollout_id == rollout_id))


def list_rollouts_by_step(session: Session, step_id: UUID) -> Sequence[Rollout]:
    """Rollouts of a step by group, index and attempt, failed attempts included."""
    return _rollouts(session, Rollout.step_id == step_id)


def list_rollouts_by_eval(session: Session, eval_id: UUID) -> Sequence[Rollout]:
    """Rollouts of an eval."""
    return _rollouts(session, Rollout.eval_id == eval_id)


def list_rollouts_by_baseline(session: Session, baseline_id: UUID) -> Sequence[Rollout]:
    """Rollouts of a baseline."""
    return _rollouts(session, Rollout.baseline_id == baseline_id)


def list_rollouts_by_task(session: Session, task_id: UUID) -> Sequence[Rollout]:
    """Rollouts of one task definition, of every training."""
    return _rollouts(session, Rollout.task_id == task_id)


def list_rollouts_by_group(session: Session, group_id: UUID) -> Sequence[Rollout]:
    """Rollouts of a group."""
    return _rollouts(session, Rollout.group_id == group_id)


def list_turns_by_rollout(session: Session, rollout_id: UUID) -> Sequence[Turn]:
    """Turns in order."""
    return session.scalars(
        select(Turn).where(Turn.rollout_id == rollout_id).order_by(Turn.turn)
    ).all()


def list_actions_by_turn(session: Session, turn_id: UUID) -> Sequence[Action]:
    """Actions of a turn in order."""
    return session.scalars(
        select(Action).where(Action.turn_id == turn_id).order_by(Action.action_index)
    ).all()


def list_observations_by_turn(session: Session, turn_id: UUID) -> Sequence[Obs]:
    """Observations of a turn, by type."""
    return session.scalars(select(Obs).where(Obs.turn_id == turn_id).order_by(Obs.obs_type)).all()


def get_validation_by_rollout(session: Session, rollout_id: UUID) -> Validation | None:
    """The validation that counts: the highest rank, and the latest of equal rank."""
    order = (Validation.rank.desc(), Validation.validation_time.desc(), Validation.id)
    return session.scalar(
        select(Validation).where(Validation.rollout_id == rollout_id).order_by(*order).limit(1)
    )


def get_environment_by_rollout(session: Session, rollout_id: UUID) -> Environment | None:
    """The environment that the rollout ran in; None before it requested one."""
    return session.scalar(
        select(Environment)
        .join(Rollout, Rollout.env_id == Environment.id)
        .where(Rollout.id == rollout_id)
    )


def count_leaked_devices(session: Session, training: UUID) -> int:
    """Devices of the training's rollouts that were not released and may still run."""
    query = select(func.count()).where(
        Environment.training_id == training,
        Environment.status == "error",
        Environment.termination_time.is_(None),
    )
    return session.scalar(query) or 0

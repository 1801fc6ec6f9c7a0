"""The recipe's queries by their names; what writes is refused with what to use instead."""

from typing import Any, Never
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from consumers import queries
from consumers.queries import *  # noqa: F403  # every query under its name
from consumers.tables import Baseline, Eval, Group, Rollout, Step, Turn, Validator

__all__ = [  # noqa: PLE0604  # names of another module
    *queries.__all__,
    "get_baseline",
    "get_eval",
    "get_group",
    "get_rollout",
    "get_step",
    "get_turn",
    "get_turn_by_rollout_and_turn",
    "get_validator",
]


def get_baseline(session: Session, baseline_id: UUID) -> Baseline | None:
    """By its row id."""
    return session.get(Baseline, baseline_id)


def get_eval(session: Session, eval_id: UUID) -> Eval | None:
    """By its row id."""
    return session.get(Eval, eval_id)


def get_group(session: Session, group_id: UUID) -> Group | None:
    """By its row id."""
    return session.get(Group, group_id)


def get_rollout(session: Session, rollout_id: UUID) -> Rollout | None:
    """By its row id."""
    return session.get(Rollout, rollout_id)


def get_step(session: Session, step_id: UUID) -> Step | None:
    """By its row id."""
    return session.get(Step, step_id)


def get_turn(session: Session, turn_id: UUID) -> Turn | None:
    """By its row id."""
    return session.get(Turn, turn_id)


def get_turn_by_rollout_and_turn(session: Session, rollout_id: UUID, turn: int) -> Turn | None:
    """By its rollout's row id and its number."""
    asked = select(Turn).where(Turn.rollout_id == rollout_id, Turn.turn == turn)
    return session.scalars(asked).first()


def get_validator(session: Session, validator_id: UUID) -> Validator | None:
    """By its row id."""
    return session.get(Validator, validator_id)


def __getattr__(name: str) -> Any:  # noqa: ANN401  # raises for every name
    if name.startswith(("create_", "update_", "record_", "get_or_create_")):
        _refuse(name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def _refuse(name: str) -> Never:
    message = (
        f"{name} writes to the tables, which are derived from the log and only read; record a"
        " training of your own with `from producer import record`"
    )
    raise ImportError(message)

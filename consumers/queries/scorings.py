"""Scorings of a training after it, and the scores of a rollout."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from consumers.tables import Score, Scoring


def list_scorings_by_training(session: Session, training_id: UUID) -> Sequence[Scoring]:
    """Every time that its rollouts were scored again, oldest first."""
    return session.scalars(
        select(Scoring)
        .where(Scoring.training_id == training_id)
        .order_by(Scoring.created_at, Scoring.id)
    ).all()


def list_scores_by_rollout(session: Session, rollout_id: UUID) -> Sequence[tuple[Score, Scoring]]:
    """(score, its scoring) of every scoring that the rollout was part of, oldest first."""
    rows = session.execute(
        select(Score, Scoring)
        .join(Scoring, Scoring.id == Score.scoring_id)
        .where(Score.rollout_id == rollout_id)
        .order_by(Scoring.created_at, Scoring.id)
    )
    return [(score, scoring) for score, scoring in rows]

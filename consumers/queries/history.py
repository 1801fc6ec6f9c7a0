"""The status history of an entity."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from consumers.tables import StatusHistory


def get_status_history(
    session: Session, entity_type: str, entity_id: UUID
) -> Sequence[StatusHistory]:
    """Every status change of an entity, newest first.

    `entity_type` is its table: training, step, rollout ...
    """
    query = select(StatusHistory).where(
        StatusHistory.entity_type == entity_type, StatusHistory.entity_id == entity_id
    )
    return session.scalars(
        query.order_by(StatusHistory.epoch.desc(), StatusHistory.sequence.desc())
    ).all()

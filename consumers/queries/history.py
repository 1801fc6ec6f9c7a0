"""What became of an entity."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from consumers.tables import StatusHistory


def get_status_history(
    session: Session, entity_type: str, entity_id: UUID
) -> Sequence[StatusHistory]:
    """Every change of one entity's status, the newest first; `entity_type` is its table.

    Training, step, rollout ...
    """
    query = select(StatusHistory).where(
        StatusHistory.entity_type == entity_type, StatusHistory.entity_id == entity_id
    )
    return session.scalars(
        query.order_by(StatusHistory.epoch.desc(), StatusHistory.sequence.desc())
    ).all()

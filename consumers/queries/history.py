"""The status history of an entity."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from consumers.tables import StatusHistory


def get_status_history(
    session: Session, entity_type: str, entity_id: UUID, limit: int | None = None
) -> Sequence[StatusHistory]:
    """The status changes of an entity, newest first; at most `limit`, None: all.

    `entity_type` is its table: training, step, rollout ...
    """
    query = select(StatusHistory).where(
        StatusHistory.entity_type == entity_type, StatusHistory.entity_id == entity_id
    )
    newest_first = query.order_by(StatusHistory.epoch.desc(), StatusHistory.sequence.desc())
    return session.scalars(newest_first.limit(limit)).all()

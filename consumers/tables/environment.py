"""Devices, simulated or real: rows of the streams `environment/<id>`."""

from uuid import UUID

from sqlalchemy import Index
from sqlalchemy.orm import Mapped

from consumers.tables.base import (
    UPDATED_IN_PLACE,
    Base,
    Document,
    Key,
    OptString,
    OptTime,
    String,
    Time,
)


class Environment(Base):
    """One device, from its request to its termination."""

    __tablename__ = "environment"
    __table_args__ = (Index(None, "training_id"), UPDATED_IN_PLACE)

    id: Mapped[Key]
    """Row id: a UUIDv5 of the natural key."""
    training_id: Mapped[UUID | None]
    """Row id of its training; NULL: no training."""
    env_type: Mapped[String]
    """Implementation: android_sim, dbbench, text_to_sql, gbox ..."""
    status: Mapped[String]
    """pending, creating, running, terminated, error."""
    gbox_id: Mapped[OptString]
    """The provider's name for it."""
    box_type: Mapped[String]
    """Operating system: android, linux; `database` of environments without one."""
    creation_time: Mapped[OptTime]
    """When it first answered."""
    termination_time: Mapped[OptTime]
    """When it was released or failed; NULL: neither, or with status error: it was not released and
    may still run."""
    status_message: Mapped[OptString]
    """Why it was released; NULL: its rollout ended."""
    error_message: Mapped[OptString]
    """Why it failed; NULL: it did not."""
    config_json: Mapped[Document]
    """Its settings."""
    created_at: Mapped[Time]
    """Time of its request."""
    updated_at: Mapped[Time]
    """Time of the last event that changed the row."""

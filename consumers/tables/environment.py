"""Devices, simulated or real: rows of the streams `environment/<id>`."""

from uuid import UUID

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
    __table_args__ = UPDATED_IN_PLACE

    id: Mapped[Key]
    training_id: Mapped[UUID | None]
    env_type: Mapped[String]
    status: Mapped[String]
    gbox_id: Mapped[OptString]
    """The provider's name for it."""
    box_type: Mapped[String]
    creation_time: Mapped[OptTime]
    """When it first answered."""
    termination_time: Mapped[OptTime]
    status_message: Mapped[OptString]
    error_message: Mapped[OptString]
    config_json: Mapped[Document]
    created_at: Mapped[Time]
    updated_at: Mapped[Time]

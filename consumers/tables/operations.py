"""The projector's lease, which no log gives back."""

from sqlalchemy.orm import Mapped, mapped_column

from consumers.tables.base import (
    OPS_SCHEMA,
    Base,
    Number,
    OptString,
    OptTime,
    String,
    Time,
)


class Lease(Base):
    """The process that projects. Times are from the database's clock."""

    __tablename__ = "lease"
    __table_args__ = {"schema": OPS_SCHEMA}

    name: Mapped[str] = mapped_column(primary_key=True)
    """`projector`."""
    holder: Mapped[String]
    """Host, process id and a nonce."""
    backend_pid: Mapped[Number]
    """The holder's session; when it is gone, the lease is free."""
    backend_start: Mapped[Time]
    """When that session began."""
    renewed_at: Mapped[Time]
    """When the holder last showed that it works."""
    projection_version: Mapped[Number]
    """`PROJECTION_VERSION` of the holder's code."""
    acquired_at: Mapped[OptTime]
    """Since when this holder projects."""
    caught_up_at: Mapped[OptTime]
    """When it reached the end of the log first; NULL: it is still catching up."""
    last_error: Mapped[OptString]
    """What it waited out last: an outage, another session's lock."""
    last_error_at: Mapped[OptTime]
    """When that was; NULL: never."""

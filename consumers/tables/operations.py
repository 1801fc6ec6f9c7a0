"""Leases and operators' drops, which no log gives back."""

from sqlalchemy import BigInteger, CheckConstraint, Identity, Index
from sqlalchemy.orm import Mapped, mapped_column

from consumers.tables.base import (
    OPS_SCHEMA,
    Base,
    Number,
    OptNumber,
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


class OperatorDrop(Base):
    """A record, the rest of a stream or a gap that an operator gave up; a rebuild honours it."""

    __tablename__ = "operator_drop"
    __table_args__ = (
        CheckConstraint("scope IN ('record', 'rest', 'gap')", name="scope"),
        Index(None, "value_sha256"),
        {"schema": OPS_SCHEMA},
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    """In the order of the decisions."""
    scope: Mapped[String]
    """record, rest (of the stream) or gap."""
    stream: Mapped[OptString]
    """NULL: the record names none."""
    value_sha256: Mapped[String]
    """Of the dropped record, the first of the dropped rest, or the first after the gap."""
    from_epoch: Mapped[OptNumber]
    """Only of a gap: the stream's position when it was given up."""
    from_sequence: Mapped[OptNumber]
    """Only of a gap, with from_epoch."""
    made_at: Mapped[Time]
    """By the database's clock."""
    made_by: Mapped[String]
    """User and host."""
    reason: Mapped[OptString]
    """As the operator gave it; NULL: none was given."""
    undone_at: Mapped[OptTime]
    """When it was taken back; it counts no longer."""
    undone_by: Mapped[OptString]
    """Who took it back: user and host; NULL: it was not taken back."""

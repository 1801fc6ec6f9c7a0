"""What operators and projectors do, apart from the rows: survives a rebuild's swap."""

from sqlalchemy import BigInteger, CheckConstraint, Identity, Index
from sqlalchemy.orm import Mapped, mapped_column

from consumers.tables.base import OPS_SCHEMA, Base, Number, OptNumber, OptString, String, Time


class Lease(Base):
    """Who projects. Times are the database's clock."""

    __tablename__ = "lease"
    __table_args__ = {"schema": OPS_SCHEMA}

    name: Mapped[str] = mapped_column(primary_key=True)
    """`projector`."""
    holder: Mapped[String]
    """host, process and a nonce."""
    backend_pid: Mapped[Number]
    """The holder's session: when it is gone, so is the holder."""
    backend_start: Mapped[Time]
    renewed_at: Mapped[Time]
    projection_version: Mapped[Number]


class OperatorDrop(Base):
    """A record, the rest of a stream or a gap that an operator gave up; a rebuild honours it."""

    __tablename__ = "operator_drop"
    __table_args__ = (
        CheckConstraint("scope IN ('record', 'rest', 'gap')", name="scope"),
        Index(None, "value_sha256"),
        {"schema": OPS_SCHEMA},
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    scope: Mapped[String]
    stream: Mapped[OptString]
    """NULL: a record that names none."""
    value_sha256: Mapped[String]
    """Of the record's value: dropped, first of the dropped rest, or first after the gap."""
    from_epoch: Mapped[OptNumber]
    """Of a gap: where the stream stood when it was given up."""
    from_sequence: Mapped[OptNumber]
    made_at: Mapped[Time]
    made_by: Mapped[String]
    reason: Mapped[OptString]

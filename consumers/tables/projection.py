"""The projection's own tables.

In the schema of the rows: both change in one transaction, also in a rebuild.
"""

from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, Index, LargeBinary, Text
from sqlalchemy.orm import Mapped, mapped_column

from consumers.tables.base import (
    UPDATED_IN_PLACE,
    Base,
    BigNumber,
    Document,
    Number,
    OptNumber,
    OptString,
    OptTime,
    String,
    Time,
)


class Projection(Base):
    """Which code filled this schema from which log. One row."""

    __tablename__ = "projection"
    __table_args__ = (CheckConstraint("one = 1", name="one"),)

    one: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    """Always 1."""
    build_id: Mapped[UUID]
    """Changes with every rebuild and retry, so that running projectors load again."""
    version: Mapped[Number]
    """`PROJECTION_VERSION` of the code that filled it."""
    catalogue_hash: Mapped[String]
    """Hash of the event types that the code that ran last knows; when it changes, parked records
    are tried again."""
    log_id: Mapped[OptString]
    """The log that the positions belong to; NULL before the first."""


class ReaderPosition(Base):
    """The next offset to read of a partition. Moved by compare-and-set."""

    __tablename__ = "reader_position"
    __table_args__ = UPDATED_IN_PLACE

    topic: Mapped[str] = mapped_column(Text, primary_key=True)
    """Name of the topic, with its prefix."""
    partition: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    """Number of the partition."""
    next_offset: Mapped[BigNumber]
    """Everything before it is in the tables."""
    appended_at: Mapped[OptTime]
    """When the last record read was appended."""
    num_events: Mapped[BigNumber]
    """Records applied."""
    num_duplicates: Mapped[BigNumber]
    """Records that were applied before."""


class StreamState(Base):
    """A stream's position and its entities' statuses."""

    __tablename__ = "stream_position"
    __table_args__ = (
        Index("ix_stream_position_parked", "stream", postgresql_where="parked_since IS NOT NULL"),
        Index("ix_stream_position_waiting", "stream", postgresql_where="num_waiting > 0"),
        UPDATED_IN_PLACE,
    )

    stream: Mapped[str] = mapped_column(Text, primary_key=True)
    """`rollout/<uuid>`."""
    epoch: Mapped[Number]
    """Epoch of the last event applied."""
    sequence: Mapped[Number]
    """Sequence of the last event applied."""
    source: Mapped[String]
    """The writer of the epoch."""
    ends: Mapped[Document]
    """Last sequence of every older epoch."""
    refused: Mapped[Document]
    """[epoch, source] of invalid claims."""
    statuses: Mapped[Document]
    """Status of the stream's owner and of what it has created: {"step/<uuid>": "training"}. Of a
    training's steps and groups only those that have not ended."""
    parked_since: Mapped[OptTime]
    """Time of the event that could not be applied (unreadable: of appending); everything later is
    parked behind it."""
    dropped: Mapped[bool]
    """An operator dropped the rest of the stream."""
    drops: Mapped[Document]
    """What operators dropped of it: hash of a record's value -> record or rest (of the
    stream); once it was that record's turn, passed or dropped."""
    num_waiting: Mapped[Number]
    """Records that wait for a gap to fill."""
    last_event_at: Mapped[OptTime]
    """Time of the last event applied; NULL: none was."""


class UnappliedRecord(Base):
    """A record that is not applied, kept whole."""

    __tablename__ = "unapplied_record"
    __table_args__ = (
        CheckConstraint("state IN ('waiting', 'parked', 'refused')", name="state"),
        Index(None, "stream"),
        Index(None, "state"),
    )

    log_id: Mapped[str] = mapped_column(Text, primary_key=True)
    """The log that it is in."""
    topic: Mapped[str] = mapped_column(Text, primary_key=True)
    """Topic of the record."""
    partition: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    """Partition of the record."""
    log_offset: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    """Offset of the record."""
    state: Mapped[String]
    """waiting: a record before it in its stream is missing; it is applied when that one comes.
    parked: it cannot be applied, or is behind such a record; an operator has to look. refused: it
    will not be applied."""
    kind: Mapped[String]
    """Why. Waiting: gap. Parked: unreadable, unknown_schema, invalid, transition, database; behind
    (such a record). Refused: fenced (written by an old owner of the stream), foreign (outside of
    the stream's home partition); dropped, behind (an operator gave up the stream from the dropped
    record on)."""
    reason: Mapped[String]
    """For people: what is wrong with it."""
    stream: Mapped[String]
    """`record/<uuid>`: neither the value nor the key names one, or it is foreign."""
    type: Mapped[OptString]
    """The event's; NULL: it could not be read."""
    epoch: Mapped[OptNumber]
    """The event's; NULL: it could not be read."""
    sequence: Mapped[OptNumber]
    """The event's; NULL: it could not be read."""
    key: Mapped[OptString]
    """The record's; NULL: it has none."""
    value: Mapped[bytes] = mapped_column(LargeBinary)
    """The record's bytes."""
    event_time: Mapped[OptTime]
    """The event's; NULL: it could not be read."""
    appended_at: Mapped[Time]
    """When the log got it."""

"""Shared by all tables: schema names, column types and the common columns.

The ORM defines the schema and serves queries; the projection writes rows without it. No foreign key
is enforced between streams, because a child may be projected before its parent: relationships are
read-only.
"""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from sqlalchemy import BigInteger, DateTime, Double, Integer, MetaData, Text, Uuid
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

__all__ = [
    "OPS_SCHEMA",
    "SCHEMA",
    "UPDATED_IN_PLACE",
    "Base",
    "BigNumber",
    "CommonColumns",
    "Document",
    "EtaColumns",
    "Json",
    "Key",
    "Number",
    "OptBigNumber",
    "OptDocument",
    "OptNumber",
    "OptReal",
    "OptString",
    "OptTime",
    "Real",
    "String",
    "Time",
]

SCHEMA = "cua"
"""Everything that is a fold of the log."""
OPS_SCHEMA = "cua_ops"
"""Survives a rebuild: the lease, the migrations' revision."""

PROJECTION_VERSION = 10
"""Incremented when the same log gives other rows; tables of another version must be rebuilt."""
FIRST_PROJECTION_VERSION = 10
"""0.1.0's. Lower ones were of development versions, whose tables are refused."""
OUTDATED = 0
"""The version of tables whose rows are not to be believed, whatever code filled them: a rebuild
gives them others."""

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "pk": "pk_%(table_name)s",
}

UPDATED_IN_PLACE = {"postgresql_with": {"fillfactor": 70}}
"""For tables whose rows change often: room in every page, so that an update is heap-only (HOT)."""

Json = JSONB(none_as_null=True)

Key = Annotated[UUID, mapped_column(Uuid, primary_key=True)]
Number = Annotated[int, mapped_column(Integer)]
OptNumber = Annotated[int | None, mapped_column(Integer)]
BigNumber = Annotated[int, mapped_column(BigInteger)]
OptBigNumber = Annotated[int | None, mapped_column(BigInteger)]
Real = Annotated[float, mapped_column(Double)]
OptReal = Annotated[float | None, mapped_column(Double)]
String = Annotated[str, mapped_column(Text)]
OptString = Annotated[str | None, mapped_column(Text)]
Time = Annotated[datetime, mapped_column(DateTime(timezone=True))]
OptTime = Annotated[datetime | None, mapped_column(DateTime(timezone=True))]
Document = Annotated[object, mapped_column(Json, nullable=False)]
OptDocument = Annotated[object, mapped_column(Json, nullable=True)]


class Base(DeclarativeBase):
    """Every table of the two schemas."""

    metadata = MetaData(schema=SCHEMA, naming_convention=NAMING)

    def __repr__(self) -> str:
        """Short enough for a failing test: the class and the key."""
        keys = ", ".join(
            f"{column.name}={getattr(self, column.key)}" for column in self.__table__.primary_key
        )
        return f"{type(self).__name__}({keys})"


class CommonColumns:
    """An entity's status, progress and times."""

    status: Mapped[String]
    """Its present status; `status_history` has every change."""
    progress_percent: Mapped[Real]
    """Progress, 0-100, from the last event that has it."""
    current_phase: Mapped[OptString]
    """What it is doing within its status; NULL: no event has a phase (groups have none)."""
    status_message: Mapped[OptString]
    """Details of the status; NULL: no event has any."""
    error_message: Mapped[OptString]
    """Why it failed; NULL: it did not."""
    start_time: Mapped[OptTime]
    """When it left its initial status for one that is not final."""
    end_time: Mapped[OptTime]
    """When it ended; NULL: it has not."""
    created_at: Mapped[Time]
    """Time of the event that created it."""
    updated_at: Mapped[Time]
    """Time of the last event that changed the row."""


class EtaColumns:
    """Time estimates in seconds, from the entity's last event that has them."""

    avg_turn_time: Mapped[OptReal]
    """Mean duration of a turn so far; NULL: no turn has ended."""
    estimated_total_time: Mapped[OptReal]
    """Elapsed plus remaining; NULL: not known before the first turn."""
    estimated_remaining_time: Mapped[OptReal]
    """Estimated at the time of updated_at; NULL: not known before the first turn."""

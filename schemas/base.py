"""The one base class of everything that is written.

Frozen, strict about extra fields, faithful to NaN.
"""

from datetime import datetime
from typing import Annotated, ClassVar
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

EntityType = str
"""A table whose rows have a status: training, step, group, rollout, environment, baseline, eval."""


class Value(BaseModel):
    """A part of a payload."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        ser_json_inf_nan="strings",
        allow_inf_nan=True,
        protected_namespaces=(),
    )


class Payload(Value):
    """A fact. Each subclass names its type and version, and what it does to which entity's status."""

    TYPE: ClassVar[str]
    """CloudEvents type, past tense: `cua.rollout.started`."""
    VERSION: ClassVar[int] = 1
    """Raised by a breaking change only, which brings an upcaster (`upcasting`)."""
    ENTITY: ClassVar[EntityType | None] = None
    """The entity whose row this fact changes; None: rows without a status (task, validator, turn,
    sample ...)."""
    STATUS: ClassVar[str | None] = None
    """The entity's status from here on; None: the fact changes no status. Restating the current one
    is no transition."""
    CREATES: ClassVar[bool] = False
    """True for the first fact of an entity: its row and its first status_history row come from
    here."""


def _require_utc(time: datetime) -> datetime:
    if time.tzinfo is None or time.utcoffset():
        message = f"expected a time in UTC, found {time.isoformat()}; pass datetime.now(UTC)"
        raise ValueError(message)
    return time


UtcTime = Annotated[datetime, AfterValidator(_require_utc)]
Id = UUID
Percent = Annotated[float, Field(ge=0, le=100)]
Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]


class Progress(Value):
    """How far an entity is, as its owner states it (one progress function computes it)."""

    percent: Percent
    """0-100; never falls within an attempt."""
    avg_turn_time_s: Seconds | None = None
    """Mean duration of the turns taken so far; None before the first."""
    estimated_total_time_s: Seconds | None = None
    """Elapsed plus remaining; None before the first turn."""
    estimated_remaining_time_s: Seconds | None = None
    """Remaining turns x average turn time / concurrency; None before the first turn."""

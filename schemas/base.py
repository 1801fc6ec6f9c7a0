"""Base classes of payloads: frozen, no unknown fields, NaN and infinities survive a round trip."""

from datetime import datetime
from typing import Annotated, ClassVar, TypeVar
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
    """The data of an event. Subclasses name their type, version and effect on a status."""

    TYPE: ClassVar[str]
    """CloudEvents type, in the past tense: `cua.rollout.started`."""
    VERSION: ClassVar[int] = 1
    """Raised by a breaking change only, together with an upcaster (`upcasting`)."""
    ENTITY: ClassVar[EntityType | None] = None
    """Type of the entity whose status row the event updates; None: only rows without a status."""
    STATUS: ClassVar[str | None] = None
    """The entity's new status; None: unchanged. Repeating the current status is no transition."""
    CREATES: ClassVar[bool] = False
    """Whether this is the first event of its entity, which creates the row and its history."""


def _require_utc(time: datetime) -> datetime:
    if time.tzinfo is None or time.utcoffset():
        message = f"{time.isoformat()} is not in UTC; pass datetime.now(UTC)"
        raise ValueError(message)
    return time


UtcTime = Annotated[datetime, AfterValidator(_require_utc)]
Id = UUID
Item = TypeVar("Item")
Items = Annotated[tuple[Item, ...], Field(fail_fast=True)]
"""A list in JSON. The first wrong item ends its reading: a record of 16 MB holds millions of them,
and an error object for each takes gigabytes."""


class OfKey:
    """Marks a text that is part of a natural key."""


class Big:
    """Marks an integer whose column has 64 bits; the others have 32."""


KeyText = Annotated[str, OfKey()]
"""At most `bounds.MAX_KEY_BYTES` of UTF-8 and no NUL, which rows replace: two keys became one."""
Percent = Annotated[float, Field(ge=0, le=100)]
Count = Annotated[int, Field(ge=0)]
BigCount = Annotated[int, Field(ge=0), Big()]
BigInt = Annotated[int, Big()]
Seconds = Annotated[float, Field(ge=0)]
Temperature = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Progress(Value):
    """Progress of an entity, computed by its emitter."""

    percent: Percent
    """0-100; never decreases within an attempt."""
    avg_turn_time_s: Seconds | None = None
    """Mean duration of a turn so far; None before the first."""
    estimated_total_time_s: Seconds | None = None
    """Elapsed plus remaining; None before the first turn."""
    estimated_remaining_time_s: Seconds | None = None
    """Remaining turns x mean turn time / concurrency; None before the first turn."""

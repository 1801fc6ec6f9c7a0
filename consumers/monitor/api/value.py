"""The base class of what the API answers, and the types of its fields.

An answer is read from a row's attributes of the same names. Numbers that JSON lacks are the texts
`NaN`, `Infinity` and `-Infinity`, as in events; times are UTC.
"""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, PlainSerializer, WithJsonSchema

from consumers.monitor.layout import not_finite


def _with_finite_numbers(document: object) -> object:
    """A document of the tables; PostgreSQL keeps numbers that Python reads as infinite (1e400)."""
    if isinstance(document, dict):
        return {str(key): _with_finite_numbers(value) for key, value in document.items()}
    if isinstance(document, list):
        return [_with_finite_numbers(value) for value in document]
    return (not_finite(document) or document) if isinstance(document, float) else document


Real = Annotated[
    float,
    WithJsonSchema(
        {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]},
        mode="serialization",
    ),
]
Utc = Annotated[datetime, AfterValidator(lambda time: time.astimezone(UTC))]
Document = Annotated[object, PlainSerializer(_with_finite_numbers), WithJsonSchema({})]
"""JSON as recorded."""


class Value(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(
        frozen=True,
        from_attributes=True,
        validate_by_name=True,
        ser_json_inf_nan="strings",
        use_attribute_docstrings=True,
        protected_namespaces=(),
    )


class StatusChange(Value):
    """One change of an entity's status."""

    changed_at: Utc
    """Time of the event."""
    old_status: str | None
    """null on creation."""
    new_status: str
    """The status from then on."""
    progress_percent: Real | None
    """0-100; null where the event has none."""
    status_message: str | None
    """The event's message, error or reason."""
    epoch: int
    """Of the event; with `sequence` it orders the changes."""
    sequence: int
    """Of the event within its epoch."""


class Failure(Value):
    """An answer other than 200 (`answer.failure`)."""

    error: str
    """What is wrong, and what to do."""

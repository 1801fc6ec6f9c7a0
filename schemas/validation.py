"""A verdict on a rollout, in the rollout's stream (rank 0) or a scoring's (a second opinion)."""

from typing import ClassVar

from pydantic import JsonValue

from schemas.base import Id, Payload, Seconds, UtcTime


class ValidationRecorded(Payload):
    """What one validator found. A validator that got no answer fails the rollout instead."""

    TYPE: ClassVar[str] = "cua.validation.recorded"

    rollout_id: Id
    validator_id: Id
    validated_at: UtcTime
    validation_query: str
    expected_result: str | None
    actual_result: str | None
    success: bool
    execution_time_s: Seconds
    error_message: str | None = None
    rank: int = 0
    """Which verdict counts when there are several: the highest, decided when reading."""
    details: dict[str, JsonValue] = {}

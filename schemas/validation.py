"""A verdict on a rollout, in the rollout's own stream (rank 0) or in a scoring's stream (a second opinion)."""

from typing import ClassVar

from pydantic import JsonValue

from schemas.base import Id, Payload, Seconds, UtcTime


class ValidationRecorded(Payload):
    """What one validator found. One validator that could not ask is a failed rollout, not a verdict."""

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

"""A validator's result: one row each, from the rollout's stream or from a scoring's."""

from collections.abc import Sequence

from consumers.fold.projectors.projector import EventContext
from consumers.fold.rows import Insert, Operation, row_id
from schemas.base import Payload
from schemas.validation import ValidationRecorded


class ValidationProjector:
    """ValidationRecorded."""

    def project(self, payload: Payload, context: EventContext) -> Sequence[Operation]:
        """One row."""
        assert isinstance(payload, ValidationRecorded)  # noqa: S101  # the registry names the class
        return [
            Insert(
                "validation",
                {
                    "id": row_id("validation", context.owner, str(payload.validator_id)),
                    "stream": context.envelope.subject,
                    "rollout_id": payload.rollout_id,
                    "validator_id": payload.validator_id,
                    "rank": payload.rank,
                    "validation_time": payload.validated_at,
                    "validation_query": payload.validation_query,
                    "expected_result": payload.expected_result,
                    "actual_result": payload.actual_result,
                    "success": payload.success,
                    "execution_time": payload.execution_time_s,
                    "error_message": payload.error_message,
                    "details_json": payload.details,
                    "created_at": context.time,
                },
            )
        ]

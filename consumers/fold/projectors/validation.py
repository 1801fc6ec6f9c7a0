"""Verdicts: a row each, whoever said it."""

from collections.abc import Sequence

from consumers.fold.projectors.projector import EventContext, Insert, Operation
from consumers.fold.projectors.row_ids import row_id
from schemas.base import Payload
from schemas.validation import ValidationRecorded


class ValidationProjector:
    """A verdict in the rollout's stream or in a scoring's."""

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

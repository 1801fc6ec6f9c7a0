"""A validator's result: one row each, from the rollout's stream or from a scoring's."""

from collections.abc import Sequence
from uuid import UUID

from consumers.fold.projectors.projector import EventContext, check_id
from consumers.fold.rows import Insert, Operation, row_id
from schemas.base import Payload
from schemas.validation import ValidationRecorded


class ValidationProjector:
    """ValidationRecorded."""

    def project(self, payload: Payload, context: EventContext) -> Sequence[Operation]:
        """One row."""
        assert isinstance(payload, ValidationRecorded)  # noqa: S101  # the registry names the class
        subject = context.envelope.subject
        is_own = subject.startswith("rollout/")
        if is_own:
            check_id("the judged rollout", payload.rollout_id, UUID(context.owner))
        # A scoring's own rows: its uuid may be that of a rollout.
        stream = context.owner if is_own else subject
        return [
            Insert(
                "validation",
                {
                    "id": row_id("validation", stream, str(payload.validator_id)),
                    "stream": subject,
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

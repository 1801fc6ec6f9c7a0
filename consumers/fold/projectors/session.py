"""Sessions with a database: one row each, besides the rollout's."""

from collections.abc import Sequence

from consumers.fold.projectors.projector import EventContext
from consumers.fold.rows import Insert, Operation
from schemas.base import Payload
from schemas.session import SessionEnded


class SessionProjector:
    """SessionEnded."""

    def project(self, payload: Payload, context: EventContext) -> Sequence[Operation]:
        """One row."""
        assert isinstance(payload, SessionEnded)  # noqa: S101  # the registry names the class
        return [
            Insert(
                "session",
                {
                    "id": context.owner,
                    "entry_id": payload.entry_id,
                    "session_status": payload.session_status,
                    "outcome": payload.outcome,
                    "answer": payload.answer,
                    "table_hash": payload.table_hash,
                    "num_rounds": payload.num_rounds,
                    "num_operations": payload.num_operations,
                    "num_sql_errors": payload.num_sql_errors,
                    "num_replayed": payload.num_replayed,
                    "error_message": payload.error_message,
                    "end_time": payload.ended_at,
                    "created_at": context.time,
                },
            )
        ]

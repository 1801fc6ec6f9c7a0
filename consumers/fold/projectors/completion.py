"""Text-to-SQL completions: what was executed, and each scorer's opinion of every step."""

from collections.abc import Sequence
from uuid import UUID

from consumers.fold.projectors.projector import EventContext
from consumers.fold.rows import Insert, Operation
from schemas.base import Payload
from schemas.completion import CompletionExecuted, CompletionStepsScored
from schemas.ids import completion_score_id, step_score_id


class CompletionProjector:
    """CompletionExecuted, CompletionStepsScored."""

    def project(self, payload: Payload, context: EventContext) -> Sequence[Operation]:
        """One row of what was executed; of a scorer one row, and one for each step."""
        match payload:
            case CompletionExecuted():
                return [_executed(payload, context)]
            case CompletionStepsScored():
                return _scored(payload, context)
            case _:
                raise AssertionError


def _executed(payload: CompletionExecuted, context: EventContext) -> Insert:
    return Insert(
        "completion",
        {
            "id": context.owner,
            "entry_id": payload.entry_id,
            "sql": payload.sql,
            "num_steps": payload.num_steps,
            "outcome": payload.outcome,
            "outcome_reward": payload.outcome_reward,
            "process_reward": payload.process_reward,
            "num_rows": payload.num_rows,
            "execution_time": payload.execution_time_s,
            "error_message": payload.error_message,
            "executed_at": payload.executed_at,
            "created_at": context.time,
        },
    )


def _scored(payload: CompletionStepsScored, context: EventContext) -> list[Operation]:
    scorer, owner = payload.scorer, UUID(context.owner)
    operations: list[Operation] = [
        Insert(
            "completion_score",
            {
                "id": completion_score_id(owner, scorer),
                "completion_id": context.owner,
                "scorer": scorer,
                "num_steps": len(payload.steps),
                "product": payload.product,
                "minimum": payload.minimum,
                "last": payload.last,
                "average": payload.average,
                "scored_at": payload.scored_at,
                "created_at": context.time,
            },
        )
    ]
    operations += [
        Insert(
            "step_score",
            {
                "id": step_score_id(owner, scorer, step.index),
                "completion_id": context.owner,
                "scorer": scorer,
                "step_index": step.index,
                "text": step.text,
                "first_token": step.first_token,
                "last_token": step.last_token,
                "score": step.score,
                "label": step.label,
                "created_at": context.time,
            },
        )
        for step in payload.steps
    ]
    return operations

"""Rollouts scored again: a row for the scoring, and one for each rollout."""

from collections.abc import Sequence

from consumers.fold.projectors.projector import EventContext, check_id
from consumers.fold.rows import Insert, Operation, Row, Update, row_id
from schemas.base import Payload
from schemas.scoring import RolloutScored, ScoringCreated, ScoringFinished


class ScoringProjector:
    """ScoringCreated, RolloutScored, ScoringFinished."""

    def project(self, payload: Payload, context: EventContext) -> Sequence[Operation]:
        """One operation each."""
        match payload:
            case ScoringCreated():
                of_event = context.envelope.training_id
                if of_event is not None:
                    check_id(
                        "the training that the event belongs to", of_event, payload.training_id
                    )
                return [
                    Insert(
                        "scoring",
                        {
                            "id": context.owner,
                            "training_id": payload.training_id,
                            "reward_name": payload.reward_name,
                            "judge": payload.judge,
                            "config_json": payload.config,
                            "total_rollouts": payload.total_rollouts,
                            "created_at": context.time,
                            "updated_at": context.time,
                        },
                    )
                ]
            case RolloutScored():
                return [
                    Insert(
                        "score",
                        {
                            "id": row_id("score", context.owner, str(payload.rollout_id)),
                            "scoring_id": context.owner,
                            "rollout_id": payload.rollout_id,
                            "reward": payload.reward,
                            "success": payload.success,
                            "error_message": payload.error_message,
                            "details_json": payload.details,
                            "created_at": context.time,
                        },
                    )
                ]
            case ScoringFinished():
                columns: Row = {
                    "scored_rollouts": payload.scored_rollouts,
                    "failed_rollouts": payload.failed_rollouts,
                    "reward_mean": payload.reward_mean,
                    "success_rate": payload.success_rate,
                    "end_time": payload.ended_at,
                    "updated_at": context.time,
                }
                return [Update("scoring", context.owner, columns)]
            case _:
                raise AssertionError

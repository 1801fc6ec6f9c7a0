"""A group's row: a step's groups come from the training's stream, an evaluation's from its own."""

from collections.abc import Sequence
from typing import assert_never
from uuid import UUID

from consumers.fold.projectors.projector import (
    EventContext,
    check_id,
    progress_columns,
    source_columns,
)
from consumers.fold.rows import Insert, Operation, Row, Update
from schemas.base import Payload
from schemas.group import (
    GroupCreated,
    GroupDropped,
    GroupFailed,
    GroupFinished,
    GroupProgressed,
    GroupStarted,
)
from schemas.ids import group_id

GroupEvent = GroupCreated | GroupStarted | GroupProgressed | GroupFinished | GroupFailed


class GroupProjector:
    """Events of a group itself."""

    def project(self, payload: Payload, context: EventContext) -> Sequence[Operation]:
        """One row."""
        if isinstance(payload, GroupDropped):
            values: Row = {"dropped_reason": payload.reason, "updated_at": context.time}
            return [Update("group", str(payload.group_id), values)]
        assert isinstance(payload, GroupEvent)  # noqa: S101  # the registry names the class
        if isinstance(payload, GroupCreated):
            return [Insert("group", _created(payload, context))]
        started_at = payload.started_at if isinstance(payload, GroupStarted) else None
        return [context.change(payload, _changed(payload), started_at)]


def _created(payload: GroupCreated, context: EventContext) -> Row:
    check_id(
        f"group {payload.group_num}",
        payload.group_id,
        group_id(payload.source_id, payload.group_num),
    )
    if context.envelope.subject.startswith("evaluation/"):
        check_id("the group's source", payload.source_id, UUID(context.owner))
    return source_columns(payload.source_type, payload.source_id) | {
        "id": payload.group_id,
        "training_id": context.envelope.training_id,
        "superseded": False,
        "group_num": payload.group_num,
        "batch": payload.batch,
        "num_rollouts": payload.num_rollouts,
        "completed_rollouts": 0,
        "status": payload.STATUS,
        "progress_percent": 0.0,
        "created_at": context.time,
        "updated_at": context.time,
    }


def _changed(payload: GroupEvent) -> Row:
    match payload:
        case GroupStarted():
            return {}
        case GroupProgressed():
            return progress_columns(payload.progress) | {
                "completed_rollouts": payload.completed_rollouts
            }
        case GroupFinished():
            return progress_columns(payload.progress) | {
                "completed_rollouts": payload.completed_rollouts,
                "reward_mean": payload.reward_mean,
                "reward_std": payload.reward_std,
                "success_count": payload.success_count,
                "rollout_ids": payload.rollout_ids,
                "end_time": payload.ended_at,
                "metrics_json": payload.metrics,
            }
        case GroupFailed():
            return {
                "completed_rollouts": payload.completed_rollouts,
                "error_message": payload.error_message,
                "end_time": payload.ended_at,
            }
        case GroupCreated():
            raise AssertionError
        case _:
            assert_never(payload)

"""An environment's row."""

from collections.abc import Sequence
from typing import assert_never

from consumers.fold.projectors.projector import EventContext, Insert, Operation, Row, Update
from schemas.base import Payload
from schemas.environment import (
    EnvironmentCreationStarted,
    EnvironmentFailed,
    EnvironmentRequested,
    EnvironmentStarted,
    EnvironmentTerminated,
)

EnvironmentFact = (
    EnvironmentRequested
    | EnvironmentCreationStarted
    | EnvironmentStarted
    | EnvironmentTerminated
    | EnvironmentFailed
)


class EnvironmentProjector:
    """Facts about one device. Its table has no start_time.

    `creation_time` says when it first answered.
    """

    def project(self, payload: Payload, context: EventContext) -> Sequence[Operation]:
        """One row."""
        assert isinstance(payload, EnvironmentFact)  # noqa: S101  # the registry names the class
        if isinstance(payload, EnvironmentRequested):
            row: Row = {
                "id": context.owner,
                "training_id": context.training_id,
                "env_type": payload.env_type,
                "box_type": payload.box_type,
                "config_json": payload.config,
                "status": payload.STATUS,
                "created_at": context.time,
                "updated_at": context.time,
            }
            return [Insert("environment", row)]
        values = _changed(payload) | {"updated_at": context.time}
        if context.changes_status:
            values["status"] = payload.STATUS
        return [Update("environment", context.owner, values)]


def _changed(payload: EnvironmentFact) -> Row:
    match payload:
        case EnvironmentCreationStarted():
            return {}
        case EnvironmentStarted():
            return {"gbox_id": payload.gbox_id, "creation_time": payload.started_at}
        case EnvironmentTerminated():
            return {
                "termination_time": payload.terminated_at,
                "status_message": payload.status_message,
            }
        case EnvironmentFailed():
            return {
                "termination_time": payload.terminated_at,
                "error_message": payload.error_message,
            }
        case EnvironmentRequested():
            raise AssertionError
        case _:
            assert_never(payload)

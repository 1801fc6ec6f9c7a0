"""An environment's row."""

from collections.abc import Sequence
from typing import assert_never

from consumers.fold.projectors.projector import EventContext
from consumers.fold.rows import Insert, Operation, Row
from schemas.base import Payload
from schemas.environment import (
    EnvironmentCreationStarted,
    EnvironmentFailed,
    EnvironmentLeaked,
    EnvironmentReleased,
    EnvironmentRequested,
    EnvironmentStarted,
    EnvironmentTerminated,
)

EnvironmentEvent = (
    EnvironmentRequested
    | EnvironmentCreationStarted
    | EnvironmentStarted
    | EnvironmentTerminated
    | EnvironmentFailed
    | EnvironmentLeaked
    | EnvironmentReleased
)

RELEASED_LATE = "released after its rollout had ended"


class EnvironmentProjector:
    """Events of one device. Its table has creation_time (first answer) instead of start_time."""

    def project(self, payload: Payload, context: EventContext) -> Sequence[Operation]:
        """One row."""
        assert isinstance(payload, EnvironmentEvent)  # noqa: S101  # the registry names the class
        if isinstance(payload, EnvironmentRequested):
            row: Row = {
                "id": context.owner,
                "training_id": context.envelope.training_id,
                "env_type": payload.env_type,
                "box_type": payload.box_type,
                "config_json": payload.config,
                "status": payload.STATUS,
                "created_at": context.time,
                "updated_at": context.time,
            }
            return [Insert("environment", row)]
        update = context.change(payload, _changed(payload))
        update.values.pop("start_time", None)
        return [update]


def _changed(payload: EnvironmentEvent) -> Row:
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
        case EnvironmentLeaked():
            return {"error_message": payload.error_message}
        case EnvironmentReleased():
            return {"termination_time": payload.released_at, "status_message": RELEASED_LATE}
        case EnvironmentRequested():
            raise AssertionError
        case _:
            assert_never(payload)

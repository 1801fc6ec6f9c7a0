"""The interface Projector: one event in, operations on rows out. Pure: no database, clock or state.

A stream is contiguous and every event is applied exactly once, so a row that an event creates
cannot exist yet: it is an Insert. Rows that several streams define alike (tasks, validators) are
Upserts.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from consumers.fold.rows import Operation, Row, UnappliableError, Update
from consumers.fold.transition import StatusTransition
from schemas.base import Payload, Progress
from schemas.event import Envelope


class EventContext(NamedTuple):
    """What a projector knows besides the payload."""

    envelope: Envelope
    owner: str
    """Id of the stream's owner: the training, the evaluation, the rollout ..."""
    time: str
    """The event's time, RFC 3339."""
    transition: StatusTransition | None
    """None: an event without an entity."""

    def change(self, payload: Payload, values: Row, started_at: object = None) -> Update:
        """Update the entity's row, adding status and start_time where they change."""
        transition = self.transition
        assert transition is not None  # noqa: S101  # every payload of this call has an ENTITY (tested for the whole catalogue)
        values["updated_at"] = self.time
        if transition.changes_status:
            values["status"] = payload.STATUS
            if transition.starts:
                values["start_time"] = started_at or self.time
        return Update(transition.entity, transition.id, values)


class Projector(Protocol):
    """Turns the payloads of one kind into operations on rows."""

    def project(self, payload: Payload, context: EventContext) -> Sequence[Operation]:
        """The operations, without status_history. UnappliableError."""
        ...


def check_id(what: str, found: object, expected: UUID) -> None:
    """UnappliableError unless an id is the hash of its natural key.

    Otherwise two streams could write to one row.
    """
    if str(found) != str(expected):
        message = f"{what} has the id {found}; its natural key gives {expected}"
        raise UnappliableError(message)


def progress_columns(progress: Progress) -> Row:
    """Percentage and time estimates."""
    return {
        "progress_percent": progress.percent,
        "avg_turn_time": progress.avg_turn_time_s,
        "estimated_total_time": progress.estimated_total_time_s,
        "estimated_remaining_time": progress.estimated_remaining_time_s,
    }


def source_columns(source_type: str, source_id: UUID) -> Row:
    """source_type and the one of step_id, eval_id and baseline_id that it names."""
    return {"source_type": source_type, f"{source_type}_id": source_id}

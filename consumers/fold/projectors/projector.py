"""The interface Projector: one event in, changes of rows out.

Pure: no database, no clock, no state of its own.

Because a stream is contiguous and every event is applied exactly once, a row that an event creates
cannot exist yet: it is an Insert. Rows that several streams state alike (tasks, validators) are a
Statement.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from schemas.base import Payload, Progress
from schemas.event import Envelope

Row = dict[str, object]
"""Column -> value. Times may be text (RFC 3339) or datetime, ids text or UUID, documents anything
that JSON can say."""


class Insert(NamedTuple):
    """A new row; `row["id"]` is its key."""

    table: str
    row: Row


class Update(NamedTuple):
    """Columns of a row that an earlier event made.

    Of a row that is not there it changes nothing.
    """

    table: str
    id: str
    values: Row


class Upsert(NamedTuple):
    """A content-addressed row: stated again it changes nothing but its times (earliest created_at, latest updated_at)."""

    table: str
    row: Row


Operation = Insert | Update | Upsert


class EventContext(NamedTuple):
    """What a projector may know besides the payload."""

    envelope: Envelope
    owner: str
    """Id of the stream's owner: the training, the evaluation, the rollout ..."""
    time: str
    """The event's time, RFC 3339."""
    training_id: UUID | None
    entity: str | None
    """Table of the entity that the event is about; None: an event without one."""
    entity_id: str
    """"" without an entity."""
    changes_status: bool
    """The event changes the entity's status."""
    starts: bool
    """It leaves its first state for one that is no end."""

    def change(self, payload: Payload, values: Row, started_at: object = None) -> Update:
        """The entity's row with these columns, its status when it moved, its start when it started."""
        values["updated_at"] = self.time
        if self.changes_status:
            values["status"] = payload.STATUS
        if self.starts:
            values["start_time"] = started_at or self.time
        assert self.entity is not None  # noqa: S101  # every payload of this call has an ENTITY (tested for the whole catalogue)
        return Update(self.entity, self.entity_id, values)


class UnappliableError(Exception):
    """An event that contradicts itself or what its stream said before.

    It is parked with this message.
    """


class Projector(Protocol):
    """Turns the payloads of one kind into changes of rows."""

    def project(self, payload: Payload, context: EventContext) -> Sequence[Operation]:
        """The changes; UnappliableError when there can be none.

        The history of statuses is not its business.
        """
        ...


def check_id(what: str, found: object, expected: UUID) -> None:
    """UnappliableError when an id is not what its natural key gives.

    Two streams could then say different things of one row.
    """
    if str(found) != str(expected):
        message = f"expected {what} to be {expected}, as its natural key gives, found {found}"
        raise UnappliableError(message)


def progress_columns(progress: Progress) -> Row:
    """The columns that every statement of progress sets."""
    return {
        "progress_percent": progress.percent,
        "avg_turn_time": progress.avg_turn_time_s,
        "estimated_total_time": progress.estimated_total_time_s,
        "estimated_remaining_time": progress.estimated_remaining_time_s,
    }


def source_columns(source_type: str, source_id: UUID) -> Row:
    """step_id, eval_id or baseline_id; the other two stay NULL."""
    return {"source_type": source_type, f"{source_type}_id": source_id}

"""Status transitions: how an event moves its entity's status, and the status_history row of it.

The same for every entity.
"""

from typing import NamedTuple

from consumers.fold.rows import Insert, row_id
from consumers.fold.stream import Stream
from schemas.base import Payload
from schemas.catalogue import PAYLOADS
from schemas.evaluation import BY_KIND
from schemas.event import Event
from schemas.status import MACHINES, IllegalTransitionError, next_status
from schemas.training import TrainingResumed

# Looked up once per class: asking a payload for a field that it lacks is slow.
_PROGRESS = {
    payload: next(
        (name for name in ("progress", "progress_percent") if name in payload.model_fields), None
    )
    for payload in PAYLOADS
}
_MESSAGES = {
    payload: tuple(
        name
        for name in ("status_message", "error_message", "reason")
        if name in payload.model_fields
    )
    for payload in PAYLOADS
}
ENDS = {entity: machine.ends for entity, machine in MACHINES.items()}
INITIAL = {entity: machine.initial for entity, machine in MACHINES.items()}


class StatusTransition(NamedTuple):
    """What an event does to an entity's status."""

    entity: str
    """Its table."""
    id: str
    old: str | None
    """None: the entity does not exist yet, or has ended."""
    new: str | None
    """None: the event carries no status."""
    changes_status: bool
    """old and new differ."""
    is_restated: bool = False
    """The entity, which the stream has forgotten, must have ended with this status."""

    @property
    def starts(self) -> bool:
        """The entity leaves its initial status for one that is not final."""
        return (
            self.changes_status
            and self.old == INITIAL[self.entity]
            and self.new not in ENDS[self.entity]
        )


def entity_key(owner: str, payload: Payload) -> tuple[str, str] | None:
    """`schemas.catalogue.entity_of` with ids as text, which saves parsing the owner's per event."""
    entity = payload.ENTITY
    if entity is None:
        return None
    if entity == "step":
        return entity, str(payload.step_id)  # type: ignore[attr-defined]  # every payload of a step has it
    if entity == "group":
        return entity, str(payload.group_id)  # type: ignore[attr-defined]  # every payload of a group has it
    if entity == BY_KIND:
        return ("baseline" if payload.kind == "baseline" else "eval"), owner  # type: ignore[attr-defined]  # every payload of an evaluation has it
    return entity, owner


def find_transition(stream: Stream, event: Event) -> StatusTransition | None:
    """The event's transition; None for an event without an entity.

    IllegalTransitionError when the entity's state machine does not allow it.
    """
    payload = event.payload
    target = entity_key(stream.owner, payload)
    if target is None:
        return None
    entity, key = target
    old = stream.statuses.get(f"{entity}/{key}")
    if payload.STATUS is None:
        # A stream forgets entities that have ended, except its owner: only of the owner does a
        # missing status prove that it was never created.
        if old is None and key == stream.owner:
            message = f"event for {entity} before its creation event"
            raise IllegalTransitionError(message)
        return StatusTransition(entity, key, old, None, changes_status=False)
    if old is None and key != stream.owner and not payload.CREATES:
        if payload.STATUS in ENDS[entity]:
            return StatusTransition(
                entity,
                key,
                payload.STATUS,
                payload.STATUS,
                changes_status=False,
                is_restated=True,
            )
        message = (
            f"{entity} cannot become {payload.STATUS}: it was never created in this stream, or it"
            " has ended"
        )
        raise IllegalTransitionError(message)
    changes_status = next_status(
        entity,
        old,
        payload.STATUS,
        creates=payload.CREATES,
        resumes=isinstance(payload, TrainingResumed),
    )
    return StatusTransition(entity, key, old, payload.STATUS, changes_status)


def remember(stream: Stream, transition: StatusTransition) -> None:
    """Update the stream's statuses: of a training, what is not itself is kept until it ends."""
    if not transition.changes_status or transition.new is None:
        return
    name = f"{transition.entity}/{transition.id}"
    is_own = transition.id == stream.owner
    if stream.forgets and not is_own and transition.new in ENDS[transition.entity]:
        stream.statuses.pop(name, None)
        stream.ended[name] = transition.new
    else:
        stream.statuses[name] = transition.new


def history(event: Event, transition: StatusTransition, time: str) -> Insert:
    """The transition's row of status_history."""
    envelope, payload = event
    return Insert(
        "status_history",
        {
            "id": row_id(
                "status_history",
                transition.entity,
                transition.id,
                str(envelope.epoch),
                str(envelope.sequence),
            ),
            "entity_type": transition.entity,
            "entity_id": transition.id,
            "old_status": transition.old,
            "new_status": transition.new,
            "progress_percent": _percent(payload),
            "status_message": _message(payload),
            "metadata_json": {"type": envelope.type},
            "changed_at": time,
            "created_at": time,
            "stream": envelope.subject,
            "epoch": envelope.epoch,
            "sequence": envelope.sequence,
        },
    )


def _percent(payload: Payload) -> object:
    """The event's progress; 0 when it creates the entity."""
    name = _PROGRESS[type(payload)]
    if name is None:
        return 0.0 if payload.CREATES else None
    progress = getattr(payload, name)
    return progress.percent if name == "progress" else progress


def _message(payload: Payload) -> object:
    for name in _MESSAGES[type(payload)]:
        if (message := getattr(payload, name)) is not None:
            return message
    return None

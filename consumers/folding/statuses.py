"""How an event moves its entity's status, and the history of it: the same for every entity."""

from typing import NamedTuple

from consumers.folding.streams import Stream
from consumers.projectors.projector import Insert
from consumers.projectors.row_ids import row_id
from schemas.base import Payload
from schemas.catalogue import PAYLOADS
from schemas.evaluation import BY_KIND
from schemas.event import Event
from schemas.status import MACHINES, IllegalTransitionError, next_status
from schemas.training import TrainingResumed

# Looked up once per class: asking a payload for a field that it lacks is slow.
_PROGRESS = {
    payload: next((name for name in ("progress", "progress_percent") if name in payload.model_fields), None) for payload in PAYLOADS
}
_MESSAGES = {
    payload: tuple(name for name in ("status_message", "error_message", "reason") if name in payload.model_fields) for payload in PAYLOADS
}
ENDS = {entity: machine.ends for entity, machine in MACHINES.items()}
INITIAL = {entity: machine.initial for entity, machine in MACHINES.items()}


class Move(NamedTuple):
    """What an event does to an entity's status."""

    entity: str
    id: str
    old: str | None
    new: str | None
    """None: the event says nothing of the status."""
    moved: bool
    """old and new differ."""

    @property
    def started(self) -> bool:
        """It leaves its first state for one that is no end."""
        return self.moved and self.old == INITIAL[self.entity] and self.new not in ENDS[self.entity]


def entity_key(owner: str, payload: Payload) -> tuple[str, str] | None:
    """`schemas.catalogue.entity_of` with ids as text, which saves parsing the owner's for every event (they agree by a test)."""
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


def judge_move(stream: Stream, event: Event) -> Move | None:
    """The move; None for an event without an entity. IllegalTransitionError when the entity's machine refuses it."""
    payload = event.payload
    target = entity_key(stream.owner, payload)
    if target is None:
        return None
    entity, key = target
    old = stream.statuses.get(f"{entity}/{key}")
    if payload.STATUS is None:
        # An entity that has ended is forgotten, unless it owns the stream: only of the owner is it known that it never was.
        if old is None and key == stream.owner:
            message = f"{entity} is spoken of but was never created"
            raise IllegalTransitionError(message)
        return Move(entity, key, old, None, moved=False)
    moved = next_status(entity, old, payload.STATUS, creates=payload.CREATES, resumes=isinstance(payload, TrainingResumed))
    return Move(entity, key, old, payload.STATUS, moved)


def remember(stream: Stream, move: Move) -> None:
    """Take a move into the stream's state: the owner's status for ever, others' until they end."""
    if not move.moved or move.new is None:
        return
    name = f"{move.entity}/{move.id}"
    if move.new in ENDS[move.entity] and move.id != stream.owner:
        stream.statuses.pop(name, None)
    else:
        stream.statuses[name] = move.new


def history(event: Event, move: Move, time: str) -> Insert:
    """The row of status_history of a move."""
    envelope, payload = event
    return Insert(
        "status_history",
        {
            "id": row_id("status_history", move.entity, move.id, str(envelope.epoch), str(envelope.sequence)),
            "entity_type": move.entity,
            "entity_id": move.id,
            "old_status": move.old,
            "new_status": move.new,
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
    """What the event states; the creation of an entity states 0."""
    name = _PROGRESS[type(payload)]
    if name is None:
        return 0.0 if payload.CREATES else None
    stated = getattr(payload, name)
    return stated.percent if name == "progress" else stated


def _message(payload: Payload) -> object:
    for name in _MESSAGES[type(payload)]:
        if (message := getattr(payload, name)) is not None:
            return message
    return None

"""How an event moves its entity's status, and the history of it: the same for every entity."""

from typing import NamedTuple

from consumers.projectors.projector import Insert
from consumers.row_ids import row_id
from consumers.streams import Stream
from schemas.catalogue import entity_of
from schemas.event import Event
from schemas.status import MACHINES, IllegalTransitionError, next_status
from schemas.training import TrainingResumed

ENDS = {entity: machine.ends for entity, machine in MACHINES.items()}


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
        return self.moved and self.old == MACHINES[self.entity].initial and self.new not in ENDS[self.entity]


def judge_move(stream: Stream, event: Event) -> Move | None:
    """The move; None for an event without an entity. IllegalTransitionError when the entity's machine refuses it."""
    payload = event.payload
    target = entity_of(stream.subject, payload)
    if target is None:
        return None
    entity, key = target[0], str(target[1])
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
    progress = getattr(payload, "progress", None)
    percent = progress.percent if progress is not None else getattr(payload, "progress_percent", 0.0 if payload.CREATES else None)
    return Insert(
        "status_history",
        {
            "id": row_id("status_history", move.entity, move.id, str(envelope.epoch), str(envelope.sequence)),
            "entity_type": move.entity,
            "entity_id": move.id,
            "old_status": move.old,
            "new_status": move.new,
            "progress_percent": percent,
            "status_message": _message(payload),
            "metadata_json": {"type": envelope.type},
            "changed_at": time,
            "created_at": time,
            "stream": envelope.subject,
            "epoch": envelope.epoch,
            "sequence": envelope.sequence,
        },
    )


def _message(payload: object) -> object:
    for name in ("status_message", "error_message", "reason"):
        if (message := getattr(payload, name, None)) is not None:
            return message
    return None

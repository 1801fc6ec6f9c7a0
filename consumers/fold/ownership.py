"""Whose a row is: a stream changes only what it has created itself.

An id that its payload's natural key gives is recomputed where the row is made (`projectors`). Every
other step or group that an event names must be the stream's own: it has not ended and is in the
stream's statuses, or it ended a moment ago, or its row names its stream. So a foreign event is
parked in whatever order it comes. Ids that only point at another stream's row (a sample's rollout,
a rollout's group) are references, and keep their own owner.

One id cannot be recomputed: that of an evaluation started by hand; no event has its nonce. A forged
one may be a step's, and then its groups have the ids of the step's: whichever group comes second is
parked.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from consumers.fold.rows import UnappliableError
from consumers.fold.stream import Stream
from schemas.base import Payload
from schemas.checkpoint import CheckpointSaved
from schemas.evaluation import EvaluationSuperseded
from schemas.group import GroupCreated, GroupDropped, GroupProgressed
from schemas.status import IllegalTransitionError
from schemas.step import SamplesChosen, StepProgressed
from schemas.training import StepSuperseded


class Entity(NamedTuple):
    """A row with a status."""

    table: str
    id: str

    @property
    def name(self) -> str:
        """As in `Stream.statuses`."""
        return f"{self.table}/{self.id}"


FindOwned = Callable[[Stream, Sequence[Entity]], Mapping[Entity, str]]
"""Those of these steps and groups that the stream created, according to their rows, with their
status."""


def no_tables(_stream: Stream, _entities: Sequence[Entity]) -> Mapping[Entity, str]:
    """The answer where there are no tables to ask."""
    return {}


def owned_entities(stream: Stream, payload: Payload) -> list[Entity]:  # noqa: PLR0911  # one case per event
    """What the event changes, or adds rows to, besides its own entity: the stream must own it.

    An event with a status needs none: its transition is refused for what the stream has not
    created.
    """
    match payload:
        case StepProgressed() | SamplesChosen():
            return [Entity("step", str(payload.step_id))]
        case GroupProgressed() | GroupDropped():
            return [Entity("group", str(payload.group_id))]
        case GroupCreated():
            return [Entity(payload.source_type, str(payload.source_id))]
        case StepSuperseded():
            return [Entity("step", str(payload.step_id)), *_groups(payload)]
        case EvaluationSuperseded():
            table = "baseline" if payload.kind == "baseline" else "eval"
            return [Entity(table, stream.owner), *_groups(payload)]
        case CheckpointSaved():
            owner = Entity("training", stream.owner)
            return [owner, *_steps(payload)]
        case _:
            return []


def _groups(payload: StepSuperseded | EvaluationSuperseded) -> list[Entity]:
    return [Entity("group", str(group)) for group in payload.group_ids]


def _steps(payload: CheckpointSaved) -> list[Entity]:
    return [] if payload.step_id is None else [Entity("step", str(payload.step_id))]


def check_ownership(stream: Stream, entities: Sequence[Entity], find_owned: FindOwned) -> None:
    """UnappliableError for an entity that this stream has not created."""
    unknown = [entity for entity in entities if not stream.remembers(entity.name)]
    if not unknown:
        return
    # Only a stream's owner is never forgotten; nothing but a step or a group is worth asking for.
    asked = [
        item for item in unknown if item.table in {"step", "group"} and item.id != stream.owner
    ]
    found = find_owned(stream, asked) if asked else {}
    for item in unknown:
        if item not in found:
            message = f"{item.name} was not created in the stream {stream.subject}"
            raise UnappliableError(message)


def check_restated(stream: Stream, entity: Entity, status: str, find_owned: FindOwned) -> None:
    """IllegalTransitionError unless this stream's entity has ended with this very status."""
    found = stream.ended.get(entity.name) or stream.ended_before.get(entity.name)
    if found is None:
        found = find_owned(stream, [entity]).get(entity)
    if found is None:
        message = f"{entity.table} cannot become {status}: it was never created in this stream"
        raise IllegalTransitionError(message)
    if found != status:
        message = f"{entity.table} cannot go from {found} to {status}"
        raise IllegalTransitionError(message)

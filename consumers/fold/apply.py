"""Third stage: applies an event, which is its payload, its status transition and its rows.

Gets each stream's events in order from `order`; writes to `rows` or, one event at a time, to the
database.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from consumers.fold.ownership import (
    Entity,
    FindOwned,
    check_ownership,
    check_restated,
    no_tables,
    owned_entities,
)
from consumers.fold.projectors.projector import EventContext
from consumers.fold.projectors.registry import HOMES, PROJECTORS
from consumers.fold.rows import Operation, UnappliableError
from consumers.fold.stream import Stream
from consumers.fold.transition import StatusTransition, find_transition, history, remember
from consumers.fold.unapplied import Kind
from schemas.bounds import OutOfBoundsError, check_key_texts, check_numbers
from schemas.event import Envelope, Event
from schemas.status import IllegalTransitionError
from schemas.wire import InvalidPayloadError, UnknownSchemaError, read_payload

Write = Callable[[Sequence[Operation]], None]
"""Takes one event's operations as a whole or, raising UnappliableError, not at all."""


class DatabaseRefusedError(UnappliableError):
    """The database refuses an event's rows (a constraint, a number out of range)."""


class Rejection(NamedTuple):
    """Why an event cannot be applied."""

    kind: Kind
    reason: str


class Prepared(NamedTuple):
    """What an event does, not yet written."""

    operations: Sequence[Operation]
    transition: StatusTransition | None
    owned: Sequence[Entity]
    """Entities that the stream must own."""

    @property
    def restated(self) -> tuple[Entity, str] | None:
        """What must have ended with this status."""
        transition = self.transition
        if transition is None or transition.new is None or not transition.is_restated:
            return None
        return Entity(transition.entity, transition.id), transition.new


def apply_event(
    stream: Stream, envelope: Envelope, write: Write, find_owned: FindOwned = no_tables
) -> Rejection | None:
    """Write the event's rows and update the stream's statuses; a rejected event changes nothing.

    A reader that keeps a stream from its beginning to its end needs no `find_owned`.
    """
    prepared = prepare(stream, envelope)
    if isinstance(prepared, Rejection):
        return prepared
    try:
        check_ownership(stream, prepared.owned, find_owned)
        if prepared.restated is not None:
            check_restated(stream, *prepared.restated, find_owned)
        write(prepared.operations)
    except DatabaseRefusedError as error:
        return Rejection("database", str(error))
    except UnappliableError as error:
        return Rejection("invalid", str(error))
    except IllegalTransitionError as error:
        return Rejection("transition", str(error))
    if prepared.transition is not None:
        remember(stream, prepared.transition)
    return None


def prepare(stream: Stream, envelope: Envelope) -> Prepared | Rejection:
    """The event's operations, or why it has none. Raises nothing but MemoryError.

    Everything here depends on this record and its stream alone, so whatever it raises is this
    record's fault: raised further, it would end the projection at the same offset at every start.
    """
    try:
        event = Event(envelope, read_payload(envelope))
        check_home(event)
        check_key_texts(event.payload)
        # PostgreSQL refuses these numbers too, but only those that a batch still has: an update
        # that a later event overwrites would be applied or parked by where batches end.
        check_numbers(event.payload)
        transition = find_transition(stream, event)
        operations = project(stream.owner, event, transition)
        return Prepared(operations, transition, owned_entities(stream, event.payload))
    except UnknownSchemaError as error:
        return Rejection("unknown_schema", str(error))
    except (InvalidPayloadError, UnappliableError, OutOfBoundsError) as error:
        return Rejection("invalid", str(error))
    except IllegalTransitionError as error:
        return Rejection("transition", str(error))
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  # one record's boundary: it is parked with this reason
        return Rejection("invalid", f"{envelope.type}: {type(error).__name__}: {error}")


def check_home(event: Event) -> None:
    """UnappliableError for an event type, or another training's event, that cannot be here."""
    subject = event.envelope.subject
    homes = HOMES[type(event.payload)]
    if subject.partition("/")[0] not in homes:
        message = (
            f"{event.envelope.type} in the stream {subject}; it belongs in a stream of"
            f" {' or '.join(sorted(homes))}"
        )
        raise UnappliableError(message)
    training = event.envelope.training_id
    if training is not None and subject.startswith("training/") and str(training) != subject[9:]:
        message = f"the event belongs to the training {training}, its stream is {subject}"
        raise UnappliableError(message)


def project(owner: str, event: Event, transition: StatusTransition | None) -> list[Operation]:
    """One event's operations, its status_history row included."""
    envelope, payload = event
    time = envelope.time.isoformat(timespec="microseconds")
    context = EventContext(envelope, owner, time, transition)
    operations = list(PROJECTORS[type(payload)].project(payload, context))
    if transition is not None and transition.changes_status:
        operations.append(history(event, transition, time))
    return operations

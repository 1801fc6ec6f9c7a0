"""Events to bytes and back. The bytes are the value of a Kafka record and of a row of the local log.

Written with extra fields forbidden, read with extra fields ignored. Reading is in two steps, because a reader keeps a stream's
order by the envelope alone even when it cannot understand the payload.
"""

from datetime import UTC, datetime
from uuid import UUID

import pydantic_core
from pydantic import ValidationError

from schemas.base import Payload
from schemas.catalogue import BY_TYPE
from schemas.event import Envelope, Event, StreamPoint, parse_stream_point
from schemas.upcasting import upcast

CONTENT_TYPE = "application/cloudevents+json"
SCHEMA_PREFIX = "urn:cua:"


class UnreadableError(Exception):
    """The bytes are no event of ours: not JSON, or an envelope with something missing or wrong."""


class UnknownSchemaError(Exception):
    """An event of a type or version that this code does not know; newer code may."""


class InvalidPayloadError(Exception):
    """A known type whose payload breaks its schema."""


def format_time(time: datetime) -> str:
    """RFC 3339 in UTC with microseconds: `2026-11-21T03:14:15.926535Z`."""
    # isoformat costs a third of strftime; it ends in +00:00.
    return (time if time.tzinfo is UTC else time.astimezone(UTC)).isoformat(
        timespec="microseconds"
    )[:26] + "Z"


def encode(
    payload: Payload,
    *,
    id: UUID | str,  # noqa: A002  # CloudEvents' own name
    source: str,
    time: datetime,
    subject: str,
    epoch: int,
    sequence: int,
    training_id: UUID | None = None,
    continues: StreamPoint | None = None,
) -> bytes:
    """One event as UTF-8 JSON.

    `source` and `subject` must need no JSON escaping (the emitter makes both). Assembled by hand
    because the payload's own serialiser is the fast part and a second pass over it would double the
    cost of an emit.
    """
    optional = f'"trainingid":"{training_id}",' if training_id is not None else ""
    if continues is not None:
        optional += f'"continues":"{continues}",'
    head = (
        f'{{"specversion":"1.0","id":"{id}","source":"{source}","type":"{payload.TYPE}","time":"{format_time(time)}",'
        f'"subject":"{subject}","datacontenttype":"application/json","dataschema":"{SCHEMA_PREFIX}{payload.TYPE}:{payload.VERSION}",'
        f'{optional}"epoch":{epoch},"sequence":{sequence},"data":'
    )
    return head.encode() + payload.__pydantic_serializer__.to_json(payload) + b"}"


def read_envelope(value: bytes) -> Envelope:
    """Bytes -> envelope; UnreadableError says what is wrong."""
    try:
        raw = pydantic_core.from_json(value)
    except ValueError as error:
        message = f"expected JSON, found {value[:40]!r}: {error}"
        raise UnreadableError(message) from None
    if not isinstance(raw, dict):
        message = f"expected a JSON object, found {type(raw).__name__}"
        raise UnreadableError(message)
    try:
        schema_version = raw["dataschema"].rpartition(":")[2]
        epoch, sequence, data = raw["epoch"], raw["sequence"], raw["data"]
        continues = raw.get("continues")
        training_id = raw.get("trainingid")
        time = datetime.fromisoformat(raw["time"])
        envelope = Envelope(
            id=UUID(raw["id"]),
            source=_string(raw, "source"),
            type=_string(raw, "type"),
            version=int(schema_version),
            time=time.astimezone(UTC),
            subject=_string(raw, "subject"),
            epoch=epoch,
            sequence=sequence,
            training_id=None if training_id is None else UUID(training_id),
            continues=None if continues is None else parse_stream_point(continues),
            data=data,
        )
    except KeyError as error:
        message = f"expected the attribute {error.args[0]!r}, found none"
        raise UnreadableError(message) from None
    except (ValueError, TypeError, AttributeError) as error:
        message = f"an attribute of the envelope is wrong: {error}"
        raise UnreadableError(message) from None
    if time.tzinfo is None:
        message = f"expected a time with its zone, found {raw['time']!r}"
        raise UnreadableError(message)
    if type(epoch) is not int or type(sequence) is not int or epoch < 1 or sequence < 1:
        message = f"expected epoch and sequence from 1, found {epoch!r} and {sequence!r}"
        raise UnreadableError(message)
    if not isinstance(data, dict):
        message = f"expected data to be an object, found {type(data).__name__}"
        raise UnreadableError(message)
    return envelope


def _string(raw: dict[str, object], name: str) -> str:
    value = raw[name]
    if not isinstance(value, str):
        message = f"expected {name!r} to be a string, found {type(value).__name__}"
        raise TypeError(message)
    return value


def read_payload(envelope: Envelope) -> Payload:
    """The envelope's payload, upcast and checked; UnknownSchemaError or InvalidPayloadError."""
    version, data = upcast(envelope.type, envelope.version, envelope.data)
    payload_class = BY_TYPE.get((envelope.type, version))
    if payload_class is None:
        message = (
            f"no schema for {envelope.type} version {envelope.version}; a newer cua-project may"
            " know it"
        )
        raise UnknownSchemaError(message)
    try:
        return payload_class.model_validate(data, extra="ignore")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        message = f"{envelope.type}: {where}: {first['msg']} ({error.error_count()} in all)"
        raise InvalidPayloadError(message) from None


def decode(value: bytes) -> Event:
    """Both steps at once."""
    envelope = read_envelope(value)
    return Event(envelope, read_payload(envelope))

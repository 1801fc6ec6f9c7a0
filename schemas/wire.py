"""Encoding of events: the value of a Kafka record and of a row of the local log.

Written with unknown fields forbidden, read with unknown fields ignored. Decoding has two steps, so
that a reader can keep a stream's order by the envelope even if it cannot read the payload.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

import pydantic_core
from pydantic import ValidationError

from schemas.base import Payload
from schemas.catalogue import BY_TYPE
from schemas.event import DECISION_TYPES, Envelope, Event, StreamPoint, parse_stream_point
from schemas.upcasting import upcast

CONTENT_TYPE = "application/cloudevents+json"
SCHEMA_PREFIX = "urn:cua:"
MAX_COUNT = 2**31 - 1
"""Of an epoch or a sequence: what the tables' integer columns hold."""
MAX_ATTRIBUTE_CHARS = 1_024
"""Of source, type and subject; ours have 80."""
UNREADABLE_BATCH = b"unreadable batch of Kafka: "
"""Begins the value of a record that stands for a batch which could not be read; why follows."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]").search
"""What CloudEvents forbids in a string. A NUL would be stored as another character, and a stream
would not know its own source again."""
_CANONICAL_ID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch


class UnreadableError(Exception):
    """The bytes are not an event: not JSON, or an attribute is missing or invalid."""


class UnknownSchemaError(Exception):
    """The event's type or version is unknown to this code; newer code may know it."""


class InvalidPayloadError(Exception):
    """The payload does not fit the schema of its type."""


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
    epoch: int = 0,
    sequence: int = 0,
    training_id: UUID | None = None,
    continues: StreamPoint | None = None,
) -> bytes:
    """One event as UTF-8 JSON.

    `source` and `subject` must not need JSON escaping (the emitter creates both). The envelope is
    assembled by hand, because serializing it together with the payload would double the cost of
    an emit. A decision has no epoch and no sequence.
    """
    optional = f'"trainingid":"{training_id}",' if training_id is not None else ""
    if continues is not None:
        optional += f'"continues":"{continues}",'
    if epoch:
        optional += f'"epoch":{epoch},"sequence":{sequence},'
    head = (
        f'{{"specversion":"1.0","id":"{id}","source":"{source}","type":"{payload.TYPE}","time":"{format_time(time)}",'
        f'"subject":"{subject}","datacontenttype":"application/json","dataschema":"{SCHEMA_PREFIX}{payload.TYPE}:{payload.VERSION}",'
        f'{optional}"data":'
    )
    return head.encode() + payload.__pydantic_serializer__.to_json(payload) + b"}"


def read_envelope(value: bytes) -> Envelope:
    """Bytes to envelope. UnreadableError, whatever the bytes are."""
    if value.startswith(UNREADABLE_BATCH):
        raise UnreadableError(value[:MAX_ATTRIBUTE_CHARS].decode(errors="replace"))
    try:
        raw = pydantic_core.from_json(value)
    except ValueError as error:
        message = f"not JSON: {value[:40]!r}: {error}"
        raise UnreadableError(message) from None
    if not isinstance(raw, dict):
        message = f"not a JSON object but {type(raw).__name__}"
        raise UnreadableError(message)
    try:
        return _envelope(raw)
    except KeyError as error:
        message = f"attribute {error.args[0]!r} is missing"
        raise UnreadableError(message) from None
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  # one record's boundary
        # Values are of any type here; what they raise cannot be listed (OverflowError,
        # RecursionError ...), and one that is not caught would stop the reader for ever.
        message = f"invalid attribute: {error}"
        raise UnreadableError(message) from None


def _envelope(raw: dict[str, Any]) -> Envelope:
    """The attributes, each checked. Raises whatever a value of a wrong type raises."""
    continues, training_id = raw.get("continues"), raw.get("trainingid")
    type_ = _string(raw, "type")
    is_decision = type_.startswith(DECISION_TYPES)
    time = datetime.fromisoformat(raw["time"])
    if time.tzinfo is not UTC:
        if time.tzinfo is None:
            message = f"time {raw['time']!r} has no time zone"
            raise ValueError(message)
        time = time.astimezone(UTC)
    if not isinstance(raw["data"], dict):
        message = f"data must be an object, not {type(raw['data']).__name__}"
        raise TypeError(message)
    return Envelope(
        id=_id(raw["id"]),
        source=_string(raw, "source"),
        type=type_,
        version=int(raw["dataschema"].rpartition(":")[2]),
        time=time,
        subject=_string(raw, "subject"),
        epoch=0 if is_decision else _count(raw, "epoch"),
        sequence=0 if is_decision else _count(raw, "sequence"),
        training_id=None if training_id is None else _training_id(training_id),
        continues=None if continues is None else _point(continues),
        data=raw["data"],
    )


def _id(text: str) -> str:
    """An event's id. Making a UUID of each would cost as much as checking the rest."""
    return text if _CANONICAL_ID(text) else str(UUID(text))


@lru_cache(maxsize=1_024)
def _training_id(text: str) -> UUID:
    """Cached: every event of a training repeats it."""
    return UUID(text)


def _count(raw: dict[str, Any], name: str) -> int:
    value = raw[name]
    if type(value) is not int or not 1 <= value <= MAX_COUNT:
        message = f"{name} must be an integer from 1 to {MAX_COUNT}, not {value!r}"
        raise ValueError(message)
    return value


def _point(text: str) -> StreamPoint:
    point = parse_stream_point(text)
    if not all(0 <= number <= MAX_COUNT for number in point):
        message = f"continues must name numbers from 0 to {MAX_COUNT}, not {text!r}"
        raise ValueError(message)
    return point


def _string(raw: dict[str, Any], name: str) -> str:
    """A string as CloudEvents allows it: without control characters."""
    value = raw[name]
    if not isinstance(value, str):
        message = f"{name!r} must be a string, not {type(value).__name__}"
        raise TypeError(message)
    if len(value) > MAX_ATTRIBUTE_CHARS or (not value.isprintable() and _CONTROL(value)):
        message = (
            f"{name!r} must be at most {MAX_ATTRIBUTE_CHARS} characters, none of them a control"
            f" character, not {value[:40]!r}"
        )
        raise ValueError(message)
    return value


def read_payload(envelope: Envelope) -> Payload:
    """The envelope's payload, upcast and validated. UnknownSchemaError, InvalidPayloadError."""
    try:
        version, data = upcast(envelope.type, envelope.version, envelope.data)
        payload_class = BY_TYPE.get((envelope.type, version))
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  # one record's boundary
        message = f"{envelope.type}: {type(error).__name__}: {error}"
        raise InvalidPayloadError(message) from None
    if payload_class is None:
        message = (
            f"no schema for {envelope.type} version {envelope.version}; a newer cua-project may"
            " have it"
        )
        raise UnknownSchemaError(message)
    try:
        return payload_class.model_validate(data, extra="ignore")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        message = f"{envelope.type}: {where}: {first['msg']} ({error.error_count()} errors)"
        raise InvalidPayloadError(message) from None
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  # one record's boundary
        # Whatever else a validator raises (RecursionError, OverflowError) is the payload's fault.
        message = f"{envelope.type}: {type(error).__name__}: {error}"
        raise InvalidPayloadError(message) from None


def decode(value: bytes) -> Event:
    """Bytes to event: both steps. Raises what they raise."""
    envelope = read_envelope(value)
    return Event(envelope, read_payload(envelope))

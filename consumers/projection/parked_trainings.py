"""Trainings whose streams are parked at their very first record, which therefore have no row.

What the tables cannot say is read from the parked record itself, as far as it can be read.
"""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from consumers.database.connection import Cursor
from consumers.tables import SCHEMA
from schemas.event import Envelope
from schemas.wire import UnreadableError, read_envelope

MAX_STREAMS = 500
"""Looked at; their trainings repeat."""
MAX_BYTES = 1 << 20
"""A larger value is not read."""


class ParkedTraining(NamedTuple):
    """A training with a stream that is parked from its first record on."""

    training_id: UUID
    run_name: str | None
    """None: no record that can be read says it."""
    parked_since: datetime


def parked_at_first_record(cursor: Cursor, schema: str = SCHEMA) -> list[ParkedTraining]:
    """One per training, with the earliest time; streams that name no training are left out."""
    cursor.execute(
        "SELECT DISTINCT ON (held.stream) held.stream, held.value, state.parked_since FROM"
        f' "{schema}".stream_position AS state JOIN "{schema}".held_record AS held USING (stream)'
        " WHERE state.parked_since IS NOT NULL AND state.epoch = 0 AND held_as = 'parked' AND"
        " octet_length(value) < %s ORDER BY held.stream, held.appended_at, held.log_offset LIMIT"
        " %s",
        (MAX_BYTES, MAX_STREAMS),
    )
    found: dict[UUID, ParkedTraining] = {}
    for stream, value, since in cursor.fetchall():
        envelope = _envelope(bytes(value))
        training = _training_of(stream, envelope)
        if training is None:
            continue
        known = found.get(training, ParkedTraining(training, None, since))
        found[training] = ParkedTraining(
            training, known.run_name or _run_name(envelope), min(since, known.parked_since)
        )
    return list(found.values())


def _envelope(value: bytes) -> Envelope | None:
    try:
        return read_envelope(value)
    except UnreadableError:
        return None


def _training_of(stream: str, envelope: Envelope | None) -> UUID | None:
    kind, _, owner = stream.partition("/")
    if kind == "training":
        return UUID(owner)
    return None if envelope is None else envelope.training_id


def _run_name(envelope: Envelope | None) -> str | None:
    name = None if envelope is None else envelope.data.get("run_name")
    return name if isinstance(name, str) else None

"""Parked streams and the trainings that they belong to.

A stream whose very first record is parked has no row to lead to its training; the records
themselves then say it, as far as they can be read.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import pydantic_core

from consumers.database.connection import Cursor
from consumers.tables import SCHEMA
from schemas.ids import training_id as training_id_of

OWNERS = ("rollout", "environment", "eval", "baseline")
"""Tables of streams other than a training's own; each has a training_id."""
MAX_STREAMS = 200
"""Streams without rows whose records are read; a million of them say no more."""
MAX_BYTES = 1 << 20
"""A larger record is not read for its training."""
NUM_RECORDS = 3
"""The first ones of a stream: the first may be garbled, the next still name the training."""


class ParkedStream(NamedTuple):
    """One stream that no longer follows the log."""

    stream: str
    since: datetime
    """Time of its first event that could not be applied."""
    training_id: str | None
    """None: neither a row nor a record says it."""
    run_name: str | None
    """As its parked record has it; None where it has none that can be read."""


def load_parked(cursor: Cursor) -> list[ParkedStream]:
    """Every parked stream, the first one parked first."""
    cursor.execute(
        f"SELECT stream, parked_since FROM {SCHEMA}.stream_position WHERE parked_since IS NOT NULL"
        " ORDER BY parked_since, stream"
    )
    since: dict[str, datetime] = dict(cursor.fetchall())
    owners = {stream: owner for stream in since if (owner := _owner(stream)) is not None}
    trainings = _trainings_of(cursor, list(owners.values()))
    unknown = [stream for stream in since if trainings.get(owners.get(stream, "")) is None]
    said = _read_records(cursor, unknown[:MAX_STREAMS])
    found = []
    for stream, parked_since in since.items():
        by_record, run_name = said.get(stream, (None, None))
        training_id = trainings.get(owners.get(stream, "")) or by_record
        if stream.startswith("training/"):
            # Its name says whose it is; a record in it may name somebody else's training.
            training_id = owners.get(stream)
        if run_name is not None and str(training_id_of(run_name)) != training_id:
            run_name = None
        found.append(ParkedStream(stream, parked_since, training_id, run_name))
    return found


def _owner(stream: str) -> str | None:
    """The uuid that a stream's name ends in; None: the name is garbled."""
    try:
        return str(UUID(stream.partition("/")[2]))
    except ValueError:
        return None


def _trainings_of(cursor: Cursor, owners: Sequence[str]) -> dict[str, str]:
    """Owner of a stream -> its training, for owners that have a row."""
    if not owners:
        return {}
    cursor.execute(
        f"SELECT id::text, id::text FROM {SCHEMA}.training WHERE id = ANY(%(owners)s::uuid[])"
        + "".join(
            f' UNION ALL SELECT id::text, training_id::text FROM {SCHEMA}."{table}" WHERE id ='
            " ANY(%(owners)s::uuid[]) AND training_id IS NOT NULL"
            for table in OWNERS
        ),
        {"owners": list(owners)},
    )
    return dict(cursor.fetchall())


def _read_records(
    cursor: Cursor, streams: Sequence[str]
) -> dict[str, tuple[str | None, str | None]]:
    """Stream -> (training id, run name) as its first parked records say."""
    if not streams:
        return {}
    cursor.execute(
        "SELECT wanted.stream, parked.value FROM unnest(%s::text[]) AS wanted (stream) CROSS JOIN"
        f" LATERAL (SELECT value FROM {SCHEMA}.held_record WHERE stream = wanted.stream AND"
        " held_as = 'parked' ORDER BY topic, partition, log_offset LIMIT %s) AS parked WHERE"
        " octet_length(parked.value) <= %s",
        (list(streams), NUM_RECORDS, MAX_BYTES),
    )
    said: dict[str, tuple[str | None, str | None]] = {}
    for stream, value in cursor.fetchall():
        training_id, run_name = _read(bytes(value))
        before = said.get(stream, (None, None))
        said[stream] = (before[0] or training_id, before[1] or run_name)
    return said


def _read(value: bytes) -> tuple[str | None, str | None]:
    """(training id, run name) of a record that may be anything."""
    try:
        event = pydantic_core.from_json(value)
    except ValueError:
        return None, None
    if not isinstance(event, Mapping):
        return None, None
    try:
        training_id: str | None = str(UUID(str(event.get("trainingid"))))
    except ValueError:
        training_id = None
    data = event.get("data")
    run_name = data.get("run_name") if isinstance(data, Mapping) else None
    return training_id, run_name if isinstance(run_name, str) and run_name else None

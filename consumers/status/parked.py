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

LISTED = 200
"""Streams of each list; a million of them say no more."""
MAX_BYTES = 1 << 20
"""A larger record is not read for its training."""
NUM_RECORDS = 3
"""The first ones of a stream: the first may be garbled, the next still name the training."""
PARKED = """
WITH parked AS MATERIALIZED (
    SELECT stream, parked_since, stream LIKE 'training/%%' AS is_training, CASE
        WHEN stream ~ '/[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}$'
        THEN right(stream, 36)::uuid END AS owner
    FROM {schema}.stream_position WHERE parked_since IS NOT NULL
), named AS (
    SELECT parked.stream, parked.parked_since, is_training, CASE WHEN is_training THEN owner ELSE
        coalesce(training.id, rollout.training_id, environment.training_id, eval.training_id,
            baseline.training_id) END AS training_id
    FROM parked
    LEFT JOIN {schema}.training ON training.id = owner
    LEFT JOIN {schema}.rollout ON rollout.id = owner
    LEFT JOIN {schema}.environment ON environment.id = owner
    LEFT JOIN {schema}.eval ON eval.id = owner
    LEFT JOIN {schema}.baseline ON baseline.id = owner
), grouped AS (
    SELECT stream, parked_since, training_id::text, CASE
        WHEN training.id IS NOT NULL THEN training.id::text
        WHEN training_id IS NULL THEN 'unowned'
        WHEN is_training THEN 'unborn' ELSE 'of unborn' END AS of
    FROM named LEFT JOIN {schema}.training ON training.id = training_id
), ranked AS (
    SELECT *, count(*) OVER () AS total, count(*) OVER (PARTITION BY of) AS number,
        row_number() OVER (ORDER BY parked_since, stream) AS place,
        row_number() OVER (PARTITION BY of ORDER BY parked_since, stream) AS place_of
    FROM grouped
)
SELECT stream, parked_since, training_id, of, total, number, place FROM ranked
WHERE place <= %(listed)s OR place_of = 1 OR (of = 'unborn' AND place_of <= %(listed)s)
    OR (of = 'unowned' AND place_of <= 2 * %(listed)s)
ORDER BY place
"""
"""The first streams of all, of each training, of trainings without a row, and of no training: twice
as many, because the records of the first half may name one.

One pass over the parked streams, with at most a look-up in five tables for each. A stream's name
ends in the uuid of its owner, unless it is garbled.
"""

RECORDS = """
SELECT wanted.stream, parked.value FROM unnest(%s::text[]) AS wanted (stream) CROSS JOIN LATERAL (
    SELECT value FROM (
        SELECT * FROM {schema}.unapplied_record WHERE stream = wanted.stream OFFSET 0
    ) AS unapplied
    WHERE state = 'parked' ORDER BY topic, partition, log_offset LIMIT %s
) AS parked WHERE octet_length(parked.value) <= %s
"""
"""The first parked records of some streams.

OFFSET 0: a planner without statistics reads the index of `state` too, which is every parked
record of all streams, once for each of these.
"""


class ParkedStream(NamedTuple):
    """One stream that no longer follows the log."""

    stream: str
    since: datetime
    """Time of its first event that could not be applied."""
    training_id: str | None
    """None: neither a row nor a record has it."""
    run_name: str | None
    """As its parked record has it; None where it has none that can be read."""


class ParkedStreams(NamedTuple):
    """What is parked: counts of everything, and of each list the first `LISTED`, oldest first."""

    total: int
    first: list[ParkedStream]
    since: dict[str, datetime]
    """Training -> since when the first of its streams is parked."""
    unborn: list[ParkedStream]
    """Streams of trainings without a row: their own first event is parked."""
    unowned: list[str]
    """Streams of unknown training."""
    num_unowned: int


def load_parked(cursor: Cursor) -> ParkedStreams:
    """The parked streams. What is returned grows with the trainings, not with the streams."""
    cursor.execute(PARKED.format(schema=SCHEMA), {"listed": LISTED})
    rows = [_Row(*row) for row in cursor.fetchall()]
    unowned = [row for row in rows if row.of == "unowned"]
    unborn = [row for row in rows if row.of == "unborn"]
    named = _read_records(cursor, [row.stream for row in (*unowned[:LISTED], *unborn[:LISTED])])
    found: dict[str, ParkedStream] = {}
    since: dict[str, datetime] = {}
    for row in rows:
        by_record, run_name = named.get(row.stream, (None, None))
        # A training's stream is its own; a record in it may name another training.
        is_training = row.stream.startswith("training/")
        training_id = row.training_id or (None if is_training else by_record)
        if run_name is not None and str(training_id_of(run_name)) != training_id:
            run_name = None
        found[row.stream] = ParkedStream(row.stream, row.since, training_id, run_name)
        if training_id is not None:
            since.setdefault(training_id, row.since)
    nobodys = [row.stream for row in unowned if found[row.stream].training_id is None]
    return ParkedStreams(
        total=rows[0].total if rows else 0,
        first=[found[row.stream] for row in rows if row.place <= LISTED],
        since=since,
        unborn=[found[row.stream] for row in unborn],
        unowned=nobodys[:LISTED],
        num_unowned=unowned[0].number - len(unowned) + len(nobodys) if unowned else 0,
    )


class _Row(NamedTuple):
    """One stream, with what the tables say of it."""

    stream: str
    since: datetime
    training_id: str | None
    of: str
    """The training with a row that it belongs to; else what it is."""
    total: int
    number: int
    """Streams with the same `of`."""
    place: int
    """Among all, the first one parked first."""


def _read_records(
    cursor: Cursor, streams: Sequence[str]
) -> dict[str, tuple[str | None, str | None]]:
    """Stream -> (training id, run name) as its first parked records say."""
    if not streams:
        return {}
    cursor.execute(RECORDS.format(schema=SCHEMA), (list(streams), NUM_RECORDS, MAX_BYTES))
    named: dict[str, tuple[str | None, str | None]] = {}
    for stream, value in cursor.fetchall():
        training_id, run_name = _read(bytes(value))
        before = named.get(stream, (None, None))
        named[stream] = (before[0] or training_id, before[1] or run_name)
    return named


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

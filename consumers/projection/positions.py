"""Where the projection is in the log, and who else has touched its state.

Both checked in the transaction that writes rows.

A projector that was paused and replaced finds its positions moved, and changes nothing.
"""

import json
from collections.abc import Mapping
from typing import NamedTuple
from uuid import uuid4

from consumers.database.connection import Cursor
from consumers.errors import CuaProjectError, MismatchError
from consumers.fold.fold import PartitionProgress
from consumers.fold.projectors.registry import catalogue_hash
from consumers.log.reader import LogReader, TopicPartition
from consumers.tables import PROJECTION_VERSION

Positions = dict[TopicPartition, int]
"""The next offset to read of each partition."""


class SupersededError(Exception):
    """Somebody else moved the positions or changed the state (another projector, a rebuild, an operator): reload and go on."""


class ProjectionState(NamedTuple):
    """The one row of `projection`."""

    build_id: str
    """Changes with every rebuild and every operator's decision."""
    version: int
    catalogue_hash: str
    log_id: str | None


def load_state(cursor: Cursor, schema: str) -> ProjectionState:
    """The row, made when there is none yet."""
    cursor.execute(
        f'INSERT INTO "{schema}".projection (one, build_id, version, catalogue_hash) VALUES (1, %s,'
        " %s, %s) ON CONFLICT DO NOTHING",
        (str(uuid4()), PROJECTION_VERSION, catalogue_hash()),
    )
    return read_state(cursor, schema)


def read_state(cursor: Cursor, schema: str) -> ProjectionState:
    """The row; of an empty schema what it would be."""
    cursor.execute(
        f'SELECT build_id::text, version, catalogue_hash, log_id FROM "{schema}".projection'
    )
    row = cursor.fetchone()
    return (
        ProjectionState("", PROJECTION_VERSION, catalogue_hash(), None)
        if row is None
        else ProjectionState(*row)
    )


def load_positions(cursor: Cursor, schema: str) -> Positions:
    """Every partition that was read."""
    cursor.execute(f'SELECT topic, partition, next_offset FROM "{schema}".reader_position')
    return {
        TopicPartition(topic, partition): next_offset
        for topic, partition, next_offset in cursor.fetchall()
    }


def adopt_log(cursor: Cursor, schema: str, log_id: str) -> None:
    """Start at the beginning of another log; stream positions make of its history duplicates."""
    cursor.execute(f'DELETE FROM "{schema}".reader_position')
    cursor.execute(
        f'UPDATE "{schema}".projection SET log_id = %s, build_id = %s', (log_id, str(uuid4()))
    )


def check_log(state: ProjectionState, reader: LogReader) -> None:
    """MismatchError when the positions are of another log."""
    if state.log_id is not None and state.log_id != reader.log_id:
        message = (
            f"expected the log {state.log_id} that the tables were made of, found"
            f" {reader.log_id or 'no log yet'}; to go on with the new one (its history must contain"
            " the old one's), run `cua-project run --adopt-log`"
        )
        raise MismatchError(message)


def start_positions(positions: Mapping[TopicPartition, int], reader: LogReader) -> Positions:
    """Where to read from, for every partition that the log has now.

    CuaProjectError when records between are gone or never were.
    """
    places = reader.places()
    beginnings, ends = reader.beginnings(places), reader.ends(places)
    start: Positions = {}
    for place in places:
        position = positions.get(place, 0)
        where = f"{place.topic}/{place.partition}"
        if beginnings[place] > position:
            message = (
                f"expected {where} to hold offset {position}, found it to begin at"
                f" {beginnings[place]}: records were deleted"
            )
            raise CuaProjectError(message)
        if position > ends[place]:
            message = (
                f"expected {where} to reach offset {position}, found its end at {ends[place]}: this"
                " is another log, or it was cut"
            )
            raise MismatchError(message)
        start[place] = position
    missing = sorted(set(positions) - set(places))
    if missing:
        message = (
            f"expected the log to have {missing[0].topic}/{missing[0].partition}, found no such"
            " partition: this is another log"
        )
        raise MismatchError(message)
    return start


def advance(
    cursor: Cursor,
    schema: str,
    state: ProjectionState,
    log_id: str,
    base: Mapping[TopicPartition, int],
    partitions: Mapping[tuple[str, int], PartitionProgress],
) -> None:
    """Move the positions from `base` by compare-and-set, first thing in the transaction.

    SupersededError when they are elsewhere.
    """
    moves = [
        {
            "topic": topic,
            "partition": partition,
            "base": base[TopicPartition(topic, partition)],
            "next": progress.next_offset,
            "appended_at": str(progress.appended_at),
            "events": progress.num_events,
            "duplicates": progress.num_duplicates,
        }
        for (topic, partition), progress in sorted(partitions.items())
    ]
    cursor.execute(
        f'INSERT INTO "{schema}".reader_position AS old (topic, partition, next_offset,'
        " appended_at, num_events, num_duplicates) SELECT topic, partition, next, appended_at,"
        " events, duplicates FROM json_to_recordset(%(moves)s::json) AS new (topic text, partition"
        " integer, base bigint, next bigint, appended_at timestamptz, events bigint, duplicates"
        " bigint) WHERE base = 0 ON CONFLICT DO NOTHING",
        {"moves": json.dumps([move for move in moves if move["base"] == 0])},
    )
    inserted = cursor.rowcount
    cursor.execute(
        f'UPDATE "{schema}".reader_position AS old SET next_offset = next, appended_at ='
        " new.appended_at, num_events = old.num_events + events, num_duplicates ="
        " old.num_duplicates + duplicates FROM json_to_recordset(%(moves)s::json) AS new (topic"
        " text, partition integer, base bigint, next bigint, appended_at timestamptz, events"
        " bigint, duplicates bigint) WHERE old.topic = new.topic AND old.partition = new.partition"
        " AND old.next_offset = base",
        {"moves": json.dumps([move for move in moves if move["base"] != 0])},
    )
    if inserted + cursor.rowcount != len(moves):
        message = "the reader's position is not where this projector left it"
        raise SupersededError(message)
    # Its own statement: its snapshot begins after the positions' lock was granted.
    now = read_state(cursor, schema)
    if now.build_id != state.build_id or now.log_id not in {None, log_id}:
        message = "the tables were rebuilt, or an operator changed what is held"
        raise SupersededError(message)
    if now.log_id is None:
        cursor.execute(f'UPDATE "{schema}".projection SET log_id = %s', (log_id,))

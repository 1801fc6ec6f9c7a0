"""Positions in the log, moved by compare-and-set in the transaction that writes rows.

A projector that was paused and replaced finds them moved, and changes nothing.
"""

import json
from collections.abc import Mapping
from typing import NamedTuple
from uuid import uuid4

from consumers.database.connection import Cursor
from consumers.errors import CuaProjectError, MismatchError
from consumers.fold.order import PartitionProgress
from consumers.fold.projectors.registry import catalogue_hash
from consumers.log.reach import CUT_OFF, DELETED
from consumers.log.reader import LOOK_AT, LastRecord, LogReader, TopicPartition
from consumers.log.replaced import first_replaced
from consumers.tables import PROJECTION_VERSION
from schemas.home import describe_growth

Positions = dict[TopicPartition, int]
"""The next offset to read of each partition."""


class SupersededError(Exception):
    """Another projector, a rebuild or an operator changed positions or state: load them again."""


class ProjectionState(NamedTuple):
    """The row of `projection`."""

    build_id: str
    """Changes with every rebuild and every operator decision."""
    version: int
    catalogue_hash: str
    log_id: str | None


def load_state(cursor: Cursor, schema: str) -> ProjectionState:
    """The row; inserted if the schema is new."""
    cursor.execute(
        f'INSERT INTO "{schema}".projection (one, build_id, version, catalogue_hash) VALUES (1, %s,'
        " %s, %s) ON CONFLICT DO NOTHING",
        (str(uuid4()), PROJECTION_VERSION, catalogue_hash()),
    )
    return read_state(cursor, schema)


def read_state(cursor: Cursor, schema: str) -> ProjectionState:
    """The row; for a new schema its defaults."""
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
    """Positions of every partition that was read."""
    cursor.execute(f'SELECT topic, partition, next_offset FROM "{schema}".reader_position')
    return {
        TopicPartition(topic, partition): next_offset
        for topic, partition, next_offset in cursor.fetchall()
    }


def count_events(cursor: Cursor, schema: str) -> int:
    """Events that were applied."""
    cursor.execute(f'SELECT coalesce(sum(num_events), 0) FROM "{schema}".reader_position')
    row = cursor.fetchone()
    return 0 if row is None else int(row[0])


def load_last_records(cursor: Cursor, schema: str) -> dict[TopicPartition, LastRecord]:
    """The last record that was read of every partition; without partitions that had none."""
    cursor.execute(
        f'SELECT topic, partition, next_offset, appended_at FROM "{schema}".reader_position WHERE'
        " appended_at IS NOT NULL"
    )
    return {
        TopicPartition(topic, partition): LastRecord(next_offset, appended_at)
        for topic, partition, next_offset, appended_at in cursor.fetchall()
    }


def check_log(state: ProjectionState, reader: LogReader) -> None:
    """MismatchError when the positions belong to another log."""
    if state.log_id is not None and state.log_id != reader.log_id:
        if (problem := describe_growth(state.log_id, reader.log_id)) is not None:
            raise MismatchError(problem)
        message = (
            f"the tables were made from the log {state.log_id}, but the configured log is"
            f" {reader.log_id or 'still empty'}; if the new log contains the old one's history,"
            " continue on it with `cua-project run --adopt-log`"
        )
        raise MismatchError(message)


def check_reach(positions: Mapping[TopicPartition, int], reader: LogReader) -> None:
    """MismatchError when the log does not get as far as the tables: restored from a backup, say.

    `positions`: read before, so that what is appended meanwhile is no matter.
    """
    partitions = reader.partitions()
    ends, topics = reader.end_offsets(partitions), {at.topic for at in partitions}
    for at, position in sorted(positions.items()):
        if position and at.topic not in topics:
            message = (
                f"the tables contain records of {at.topic}/{at.partition}, which this log does not"
                f" have: it is another log. {LOOK_AT}"
            )
            raise MismatchError(message)
        if at in ends and position > ends[at]:
            message = (
                f"the tables contain {at.topic}/{at.partition} up to offset {position}, but the"
                f" partition ends at {ends[at]}: {CUT_OFF}"
            )
            raise MismatchError(message)


def check_last_records(last: Mapping[TopicPartition, LastRecord], reader: LogReader) -> None:
    """MismatchError when the log has other records where the tables have read.

    It was restored from an older state and has grown past the tables since.
    """
    if (one := first_replaced(last, reader)) is not None:
        message = (
            f"the tables have read offset {one.offset} of {one.partition}, appended at"
            f" {one.read_time}, but what the log has there was appended at {one.found_time}: the"
            " log was restored from an older state, and has grown since; `cua-project rebuild"
            " --from-shorter-log` replaces the tables with what it has"
        )
        raise MismatchError(message)


def check_records(
    positions: Mapping[TopicPartition, int],
    last: Mapping[TopicPartition, LastRecord],
    reader: LogReader,
) -> None:
    """MismatchError when the log lacks records that the tables have read."""
    check_reach(positions, reader)
    check_last_records(last, reader)


def start_positions(positions: Mapping[TopicPartition, int], reader: LogReader) -> Positions:
    """The next offset of every partition that the log has now.

    CuaProjectError when that record was deleted, MismatchError when the log is too short.
    """
    check_reach(positions, reader)
    partitions = reader.partitions()
    beginnings = reader.beginning_offsets(partitions)
    start: Positions = {}
    for at in partitions:
        position = positions.get(at, 0)
        if beginnings[at] > position:
            message = (
                f"the next record to project is {at.topic}/{at.partition} offset {position}, but"
                f" the partition begins at {beginnings[at]}: {DELETED}"
            )
            raise CuaProjectError(message)
        start[at] = position
    missing = sorted(set(positions) - set(partitions))
    if missing:
        message = (
            f"the tables contain records of {missing[0].topic}/{missing[0].partition}, which this"
            " log does not have: it is another log"
        )
        raise MismatchError(message)
    return start


def advance(
    cursor: Cursor,
    schema: str,
    *,
    state: ProjectionState,
    log_id: str,
    base: Mapping[TopicPartition, int],
    partitions: Mapping[tuple[str, int], PartitionProgress],
) -> None:
    """Move the positions from `base` to `partitions`; must come first in the transaction.

    SupersededError when they are not at `base`, or the schema's state is not `state`.
    """
    moves = [
        {
            "topic": topic,
            "partition": partition,
            "base": base[TopicPartition(topic, partition)],
            "next": progress.next_offset,
            "appended_at": None if progress.appended_at is None else str(progress.appended_at),
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
        " coalesce(new.appended_at, old.appended_at), num_events = old.num_events + events,"
        " num_duplicates = old.num_duplicates + duplicates FROM"
        " json_to_recordset(%(moves)s::json) AS new (topic text, partition integer, base bigint,"
        " next bigint, appended_at timestamptz, events bigint, duplicates bigint) WHERE old.topic ="
        " new.topic AND old.partition = new.partition AND old.next_offset = base",
        {"moves": json.dumps([move for move in moves if move["base"] != 0])},
    )
    if inserted + cursor.rowcount != len(moves):
        message = "another projector has moved the positions"
        raise SupersededError(message)
    # A statement of its own: its snapshot is taken after the positions were locked.
    now = read_state(cursor, schema)
    if now.build_id != state.build_id or now.log_id not in {None, log_id}:
        message = "the tables were rebuilt, or an operator tried records again"
        raise SupersededError(message)
    if now.log_id is None:
        cursor.execute(f'UPDATE "{schema}".projection SET log_id = %s', (log_id,))

"""Streams whose rest an operator gave up: which they are, and how that is taken back.

Taking it back reads the stream again from the log and holds its records as parked ones; redriving
them then applies what is missing, in the batches and with the rules of every redrive.
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import NamedTuple

from consumers.database.connection import Cursor
from consumers.errors import NotFoundError
from consumers.fold.held import Held
from consumers.fold.parse import ParsedRecord, parse_record
from consumers.log.reader import LogReader, TopicPartition
from consumers.log.until import read_until
from consumers.projection.positions import (
    check_log,
    check_records,
    load_last_records,
    load_positions,
    read_state,
)
from consumers.projection.redrive import Operator, Redriven
from consumers.projection.write import copy_commands, execute
from consumers.tables import OPS_SCHEMA, SCHEMA
from schemas.catalogue import topic_of

BATCH_RECORDS = 2_000


class AbandonedStream(NamedTuple):
    """A stream whose rest was given up."""

    stream: str
    epoch: int
    sequence: int
    """With the epoch: its last record that counts."""
    since: datetime | None
    made_by: str | None
    reason: str | None


def abandoned_streams(cursor: Cursor, schema: str = SCHEMA) -> list[AbandonedStream]:
    """Every abandoned stream, with since when and by whom; by name."""
    cursor.execute(
        "SELECT DISTINCT ON (state.stream) state.stream, state.epoch, state.sequence, made_at,"
        f' made_by, reason FROM "{schema}".stream_position AS state LEFT JOIN'
        f" {OPS_SCHEMA}.operator_drop AS dropped ON dropped.stream = state.stream AND scope ="
        " 'rest' AND undone_at IS NULL WHERE state.abandoned ORDER BY state.stream, made_at"
    )
    return [AbandonedStream(*row) for row in cursor.fetchall()]


def take_up_again(
    operator: Operator,
    reader: LogReader,
    stream: str,
    *,
    topic_prefix: str,
    made_by: str,
    keep_going: Callable[[], None] = lambda: None,
) -> Redriven:
    """Undo `drop --rest`: read the stream again from the log, and redrive it.

    NotFoundError when the stream is not abandoned; MismatchError on another log, and on one that
    was restored from an older state.
    """
    connection = operator.connection
    with connection, connection.cursor() as cursor:
        if stream not in {
            abandoned_stream.stream for abandoned_stream in abandoned_streams(cursor)
        }:
            message = (
                f"{stream} is not abandoned; `cua-project parked list --as abandoned` shows the"
                " streams that are"
            )
            raise NotFoundError(message)
        check_log(read_state(cursor, SCHEMA), reader)
        positions = load_positions(cursor, SCHEMA)
        check_records(positions, load_last_records(cursor, SCHEMA), reader)
        # What an interrupted try has left.
        cursor.execute(
            f'DELETE FROM "{SCHEMA}".held_record WHERE stream = %s AND held_as = %s',
            (stream, "parked"),
        )
    topic = topic_of(stream, topic_prefix)
    until = {at: end for at, end in positions.items() if at.topic == topic}
    for batch in _records(reader, stream, until, {}, keep_going):
        with connection, connection.cursor() as cursor:
            _hold(cursor, reader.log_id, stream, batch)

    def change(cursor: Cursor) -> None:
        # What was projected meanwhile was ignored, as the stream was still abandoned.
        now = load_positions(cursor, SCHEMA)
        ends = {at: end for at, end in now.items() if at.topic == topic}
        for batch in _records(reader, stream, ends, until, keep_going):
            _hold(cursor, reader.log_id, stream, batch)
        cursor.execute(
            f'UPDATE "{SCHEMA}".stream_position SET abandoned = false, parked_since = (SELECT'
            f' min(coalesce(event_time, appended_at)) FROM "{SCHEMA}".held_record WHERE stream ='
            " %(stream)s AND held_as = 'parked') WHERE stream = %(stream)s",
            {"stream": stream},
        )
        cursor.execute(
            f"UPDATE {OPS_SCHEMA}.operator_drop SET undone_at = clock_timestamp(), undone_by = %s"
            " WHERE stream = %s AND scope = 'rest' AND undone_at IS NULL",
            (made_by, stream),
        )

    operator.exclusively(change)
    return operator.redrive([stream])


def _hold(cursor: Cursor, log_id: str, stream: str, batch: list[ParsedRecord]) -> None:
    """Park records; those that are held already (refused ones) stay as they are."""
    if not batch:
        return
    cursor.execute(
        "SELECT topic, partition, log_offset FROM"
        f' "{SCHEMA}".held_record WHERE log_id = %s AND stream = %s',
        (log_id, stream),
    )
    known = set(cursor.fetchall())
    reason = "read again after its stream was given up; `cua-project parked redrive` applies it"
    held = [
        Held(log_id, parsed.record, "parked", "behind", reason, stream, parsed.envelope)
        for parsed in batch
        if parsed.record[:3] not in known
    ]
    execute(cursor, copy_commands(SCHEMA, "held_record", (item.row() for item in held)))


def _records(
    reader: LogReader,
    stream: str,
    until: dict[TopicPartition, int],
    since: dict[TopicPartition, int],
    keep_going: Callable[[], None],
) -> Iterator[list[ParsedRecord]]:
    """The stream's records, in whatever partitions of its topic they are."""
    start = {at: since.get(at, 0) for at in until}
    behind = sorted(at for at, end in until.items() if start[at] < end)
    beginnings = reader.beginning_offsets(behind)
    starts = {at: max(start[at], beginnings[at]) for at in behind}
    for records in read_until(reader, starts, until, BATCH_RECORDS, keep_going):
        parsed_records = [
            parse_record(record) for record in records if record.key in {None, stream}
        ]
        yield [parsed for parsed in parsed_records if parsed.stream == stream]

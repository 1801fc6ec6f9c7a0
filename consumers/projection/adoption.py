"""Continues tables on another log: checks first that it holds everything that the tables hold.

The new log is folded in memory, by the rules of a projection, and every stream must get as far as
it is in the tables. The projection then begins at the new log's beginning, where what was applied
before is a duplicate, and parked and waiting records get their new coordinates.
"""

import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple
from uuid import uuid4

from consumers.database.connection import Connection, Cursor
from consumers.errors import MismatchError
from consumers.fold.fold import Fold
from consumers.fold.parse import ParsedRecord, parse_records
from consumers.fold.stream import Stream
from consumers.fold.unapplied import Unapplied
from consumers.log.reader import LogReader
from consumers.log.until import read_until
from consumers.projection.positions import read_state
from schemas.catalogue import stream_kind
from schemas.decision import value_hash
from schemas.home import describe_growth
from schemas.streams import StreamPosition

logger = logging.getLogger(__name__)

BATCH_RECORDS = 5_000
NAMED = 3
"""Missing streams that the error names; the others are counted."""


class _Reached(NamedTuple):
    """How far a stream is in the tables."""

    epoch: int
    sequence: int
    source: str


class _Tables(NamedTuple):
    """What the new log must contain."""

    streams: dict[str, _Reached]
    unapplied: dict[str, str]
    """Hash of the value of a record that is not applied -> its stream."""


def adopt_log(
    connection: Connection, schema: str, reader: LogReader, keep_going: Callable[[], None]
) -> None:
    """Start at the beginning of the reader's log. MismatchError when it lacks history.

    `keep_going` is called between the reads of the check, which takes as long as a replay.
    """
    with connection, connection.cursor() as cursor:
        old = read_state(cursor, schema).log_id
        if (problem := describe_growth(old or "", reader.log_id)) is not None:
            raise MismatchError(problem)
        tables = _read_tables(cursor, schema)
    logger.info(
        "checking that the log %s contains the %s streams of the tables",
        reader.log_id or "(empty)",
        f"{len(tables.streams):,}",
    )
    _check(tables, _replayed(reader, tables, keep_going))
    with connection, connection.cursor() as cursor:
        cursor.execute(f'LOCK TABLE "{schema}".reader_position IN EXCLUSIVE MODE')
        cursor.execute(f'DELETE FROM "{schema}".reader_position')
        # They are read again, where they are now.
        cursor.execute(f'DELETE FROM "{schema}".unapplied_record')
        cursor.execute(f"DELETE FROM \"{schema}\".stream_position WHERE stream LIKE 'record/%'")
        cursor.execute(
            f'UPDATE "{schema}".stream_position SET parked_since = NULL, num_waiting = 0,'
            " dropped = false"
        )
        cursor.execute(
            f'UPDATE "{schema}".projection SET log_id = %s, build_id = %s',
            (reader.log_id, str(uuid4())),
        )


def _read_tables(cursor: Cursor, schema: str) -> _Tables:
    cursor.execute(
        f'SELECT stream, epoch, sequence, source FROM "{schema}".stream_position WHERE epoch > 0'
    )
    streams = {stream: _Reached(*point) for stream, *point in cursor.fetchall()}
    cursor.execute(
        f"SELECT encode(sha256(value), 'hex'), stream FROM \"{schema}\".unapplied_record"
    )
    return _Tables(streams, dict(cursor.fetchall()))


class _Replayed(NamedTuple):
    """What the new log contains."""

    streams: dict[str, Stream]
    unapplied: set[str]
    """Which of the hashes in `_Tables.unapplied` it contains."""


def _replayed(reader: LogReader, tables: _Tables, keep_going: Callable[[], None]) -> _Replayed:
    found = _Replayed({}, set())
    memory: dict[str, list[Unapplied]] = {}
    partitions = reader.partitions()
    ends = reader.end_offsets(partitions)
    starts = reader.beginning_offsets(partitions)
    names = set(tables.unapplied.values())
    for records in read_until(reader, starts, ends, BATCH_RECORDS, keep_going):
        parsed_records = parse_records(records, reader.log_id)
        Fold(found.streams, log_id=reader.log_id, memory=memory).take_all(parsed_records)
        found.unapplied.update(_hashes(parsed_records, names) & tables.unapplied.keys())
    return found


def _hashes(parsed_records: Iterable[ParsedRecord], streams: set[str]) -> set[str]:
    """Of the values in these streams."""
    # A record that is in no stream may be elsewhere in another log, and there in one.
    is_anywhere = any(stream_kind(name) == "record" for name in streams)
    return {
        value_hash(parsed.record.value)
        for parsed in parsed_records
        if is_anywhere or parsed.stream in streams
    }


def _check(tables: _Tables, found: _Replayed) -> None:
    missing = [
        stream
        for stream, reached in tables.streams.items()
        if stream not in found.streams or not _contains(found.streams[stream].position, reached)
    ]
    unseen = tables.unapplied.keys() - found.unapplied
    if not missing and not unseen:
        return
    examples = sorted(missing)[:NAMED] or sorted({tables.unapplied[one] for one in unseen})[:NAMED]
    message = (
        f"this log lacks what the tables contain: {len(missing):,} of {len(tables.streams):,}"
        f" streams do not get as far in it, and {len(unseen):,} records that are not applied are"
        f" not in it (for example {', '.join(examples)}). Ship the old log's whole history to it"
        " first, or use another database for this log"
    )
    raise MismatchError(message)


def _contains(position: StreamPosition, reached: _Reached) -> bool:
    if position.epoch > reached.epoch:
        return position.ends.get(reached.epoch, 0) >= reached.sequence
    return (
        position.epoch == reached.epoch
        and position.sequence >= reached.sequence
        and position.source == reached.source
    )

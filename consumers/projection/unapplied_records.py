"""Reads what is not applied: as a list, one record by its id, and the next few to try again."""

import re
from collections.abc import Generator, Sequence
from datetime import datetime
from typing import NamedTuple

from consumers.database.connection import Cursor
from consumers.errors import NotFoundError, UsageError
from consumers.fold.unapplied import Unapplied
from consumers.projection.positions import Positions
from consumers.projection.stored import UNAPPLIED_COLUMNS, unapplied_records
from consumers.projection.unapplied_filter import UnappliedFilter

MAX_BYTES = 32 << 20
"""Values in memory at once, when more than one record is taken."""
FETCHED_RECORDS = 32
"""Of `parked_pages`, at once: a record is about 1 MiB at most."""
PART_RECORDS = 2_000
"""Of a list, fetched at once: some 20 ms."""
FIRST = ("", "", -1, -1)
"""A place before every record."""
MAX_DIGITS = 20
"""Of a partition or an offset; a bigint has 19."""
_RECORD_ID = re.compile(r"([A-Za-z0-9._-]+)/([0-9]+)@([0-9]+)")
"""Kafka's names of topics; other digits than these, which Python knows, PostgreSQL does not."""


class UnappliedSummary(NamedTuple):
    """A record as a list shows it."""

    id: str
    """`topic/partition@offset`, as commands take it."""
    topic: str
    partition: int
    offset: int
    state: str
    kind: str
    reason: str
    stream: str
    type: str | None
    epoch: int | None
    sequence: int | None
    event_time: datetime | None
    appended_at: datetime

    @property
    def since(self) -> datetime:
        """The event's time; of an unreadable record, when it was appended."""
        return self.event_time or self.appended_at


Place = tuple[str, str, int, int]
"""log id, topic, partition, offset: the order of a list."""


class UnappliedCount(NamedTuple):
    """How many records, of how many streams."""

    records: int
    streams: int


def unapplied_page(
    cursor: Cursor,
    schema: str,
    wanted: UnappliedFilter,
    after: Place | None,
    limit: int,
    condition: str = "true",
) -> tuple[list[UnappliedSummary], Place | None]:
    """The next records in order, and the last one's place; None: there are no more."""
    where, values = wanted.condition()
    cursor.execute(
        "SELECT log_id, topic, partition, log_offset, state, kind, reason, stream, type, epoch,"
        f' sequence, event_time, appended_at FROM "{schema}".unapplied_record WHERE (log_id, topic,'
        " partition, log_offset) > (%(log_id)s, %(topic)s, %(partition)s, %(offset)s) AND"
        f" {condition} AND {where} ORDER BY log_id, topic, partition, log_offset LIMIT %(limit)s",
        values
        | dict(zip(("log_id", "topic", "partition", "offset"), after or FIRST, strict=True))
        | {"limit": limit},
    )
    rows = cursor.fetchall()
    page = [UnappliedSummary(f"{row[1]}/{row[2]}@{row[3]}", *row[1:]) for row in rows]
    return page, rows[-1][:4] if len(rows) == limit else None


def count_unapplied(
    cursor: Cursor,
    schema: str,
    wanted: UnappliedFilter,
    condition: str = "true",
) -> UnappliedCount:
    """How many are meant."""
    where, values = wanted.condition()
    cursor.execute(
        f'SELECT count(*), count(DISTINCT stream) FROM "{schema}".unapplied_record WHERE'
        f" {condition} AND {where}",
        values,
    )
    return UnappliedCount(*(cursor.fetchone() or (0, 0)))


def count_parked_since(cursor: Cursor, schema: str, start: Positions) -> int:
    """How many records at or after these positions are parked."""
    places = [(at.topic, at.partition, offset) for at, offset in start.items()]
    topics, partitions, offsets = zip(*places, strict=True) if places else ((), (), ())
    cursor.execute(
        f'SELECT count(*) FROM "{schema}".unapplied_record LEFT JOIN unnest(%s::text[],'
        " %s::integer[], %s::bigint[]) AS start (topic, partition, first) USING (topic, partition)"
        " WHERE state = 'parked' AND log_offset >= coalesce(first, 0)",
        (list(topics), list(partitions), list(offsets)),
    )
    row = cursor.fetchone()
    return 0 if row is None else int(row[0])


def streams_of(cursor: Cursor, schema: str, wanted: UnappliedFilter) -> list[str]:
    """The streams of the records that are meant."""
    where, values = wanted.condition()
    cursor.execute(
        f'SELECT DISTINCT stream FROM "{schema}".unapplied_record WHERE {where} ORDER BY 1', values
    )
    return [row[0] for row in cursor.fetchall()]


def find_unapplied(cursor: Cursor, schema: str, record_id: str) -> Unapplied:
    """One record that is not applied, by its id. NotFoundError, UsageError."""
    named = _RECORD_ID.fullmatch(record_id)
    if named is None:
        message = (
            f"{record_id[:200]!r} is not a record id; give topic/partition@offset, as `cua-project"
            " parked list` prints it"
        )
        raise UsageError(message)
    topic, partition, offset = named.groups()
    if len(partition) <= MAX_DIGITS and len(offset) <= MAX_DIGITS:
        cursor.execute(
            f'SELECT {UNAPPLIED_COLUMNS} FROM "{schema}".unapplied_record WHERE topic = %s AND'
            " partition = %s::numeric AND log_offset = %s::numeric",
            (topic, partition, offset),
        )
        for found in unapplied_records(cursor):
            return found
    message = (
        f"{record_id[:200]} is not among the records that are not applied; `cua-project parked"
        " list` shows them"
    )
    raise NotFoundError(message)


def count_parked(
    cursor: Cursor, schema: str, streams: Sequence[str] | None = None
) -> dict[str, int]:
    """How many records every stream with a parked one has parked; by the stream's name.

    `streams`: only of these.
    """
    of = "true" if streams is None else "stream = ANY(%(streams)s)"
    cursor.execute(
        f'SELECT stream, count(*) FROM "{schema}".unapplied_record WHERE state = %(parked)s AND'
        f" {of} GROUP BY stream",
        {"parked": "parked", "streams": None if streams is None else list(streams)},
    )
    return dict(sorted(cursor.fetchall()))


def interrupted_retries(cursor: Cursor, schema: str) -> list[tuple[str, int, int, str]]:
    """The first parked record of each stream whose retry was interrupted.

    As (topic, partition, offset, stream). Nothing that cannot be applied is parked there, only what
    comes behind.
    """
    cursor.execute(
        "SELECT DISTINCT ON (stream) topic, partition, log_offset, stream FROM"
        f" \"{schema}\".unapplied_record WHERE state = 'parked' AND stream IN (SELECT stream FROM"
        f" \"{schema}\".unapplied_record WHERE state = 'parked' GROUP BY stream HAVING"
        f" bool_and(kind = 'behind')) ORDER BY stream, {_ORDER}",
    )
    return [(topic, partition, offset, stream) for topic, partition, offset, stream in cursor]


_ORDER = 'stream COLLATE "C", log_id, topic, partition, log_offset'
"""Stream by stream, in the order of reading: a stream's records are in one partition."""
_PARKED = "state = 'parked'"


def next_parked(
    cursor: Cursor, schema: str, streams: Sequence[str], max_records: int
) -> list[Unapplied]:
    """The first parked records of these streams; one at least, then up to MAX_BYTES."""
    cursor.execute(
        f"SELECT {UNAPPLIED_COLUMNS} FROM (SELECT *, sum(octet_length(value)) OVER (ORDER BY"
        f" {_ORDER}) - octet_length(value) AS bytes_before FROM (SELECT * FROM"
        f' "{schema}".unapplied_record WHERE {_PARKED} AND stream = ANY(%s) ORDER BY {_ORDER} LIMIT'
        f" %s) AS first) AS numbered WHERE bytes_before < %s ORDER BY {_ORDER}",
        (list(streams), max_records, MAX_BYTES),
    )
    return unapplied_records(cursor)


def parked_pages(
    cursor: Cursor, schema: str, streams: Sequence[str], max_records: int
) -> Generator[list[Unapplied], None, None]:
    """All parked records of these streams, some at a time: one at least, then up to MAX_BYTES.

    As they are at the first: sorted once, whatever the transaction changes meanwhile.
    """
    with cursor.connection.cursor("parked_records") as ordered:
        ordered.execute(
            f'SELECT {UNAPPLIED_COLUMNS} FROM "{schema}".unapplied_record WHERE {_PARKED} AND'
            f" stream = ANY(%s) ORDER BY {_ORDER}",
            (list(streams),),
        )
        page: list[Unapplied] = []
        num_bytes = 0
        while some := unapplied_records(ordered, min(FETCHED_RECORDS, max_records - len(page))):
            page += some
            num_bytes += sum(len(unapplied.record.value) for unapplied in some)
            if len(page) == max_records or num_bytes >= MAX_BYTES:
                yield page
                page, num_bytes = [], 0
        if page:
            yield page


def since_of_next(cursor: Cursor, schema: str, stream: str, num_before: int) -> datetime | None:
    """Since when the stream's next parked record after the first `num_before` is; None: none."""
    cursor.execute(
        f'SELECT coalesce(event_time, appended_at) FROM "{schema}".unapplied_record WHERE {_PARKED}'
        f" AND stream = %s ORDER BY {_ORDER} OFFSET %s LIMIT 1",
        (stream, num_before),
    )
    row = cursor.fetchone()
    return None if row is None else row[0]


def summary_of(record_id: str, unapplied: Unapplied) -> UnappliedSummary:
    """A record as a list shows it."""
    envelope, record = unapplied.envelope, unapplied.record
    return UnappliedSummary(
        record_id,
        record.topic,
        record.partition,
        record.offset,
        unapplied.state,
        unapplied.kind,
        unapplied.reason,
        unapplied.stream,
        None if envelope is None else envelope.type,
        None if envelope is None else envelope.epoch or None,
        None if envelope is None else envelope.sequence or None,
        None if envelope is None else envelope.time,
        record.appended_at,
    )

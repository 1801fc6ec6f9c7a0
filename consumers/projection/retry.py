"""Tries parked records again: as if they had just been read, some thousands at a time.

In the caller's transaction. An operator's retry commits each part, so that it holds up no
projector for long; a decision in the log is one transaction with the position behind it.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import NamedTuple

from consumers.database.connection import Cursor
from consumers.fold.apply import Write
from consumers.fold.fold import EVERYTHING, Fold, FoldedBatch, ReplayFilter
from consumers.fold.order import BEHIND
from consumers.fold.parse import parse_record
from consumers.fold.stream import Stream
from consumers.fold.unapplied import GIVEN_UP, Unapplied
from consumers.projection.positions import read_state
from consumers.projection.stored import find_owned, load_streams
from consumers.projection.unapplied_records import next_parked, parked_pages, since_of_next
from consumers.projection.write import batch_commands, execute

BATCH_RECORDS = 1_000
"""Per part: projectors are held up for some tenths of a second."""


class Retried(NamedTuple):
    """The result of one part."""

    events: int
    """Applied."""
    unfinished: list[str]
    """Streams with parked records that were not tried yet, by name."""


def retry_part(
    cursor: Cursor,
    schema: str,
    names: Sequence[str],
    write: Write | None = None,
    *,
    max_records: int = BATCH_RECORDS,
) -> Retried:
    """Try the first parked records of these streams, whose names are sorted.

    Until the last of them is tried a stream stays parked. psycopg2's errors, UnwritableError.
    """
    records = next_parked(cursor, schema, names, max_records)
    if not records:
        return Retried(0, [])
    last = records[-1].stream
    num_of_last = sum(unapplied.stream == last for unapplied in records)
    since = since_of_next(cursor, schema, last, num_of_last)
    tried = _try(cursor, schema, records, write, EVERYTHING)
    unfinished = {name for name in names if name > last} | set(tried.batch.decided)
    stream = tried.streams[last]
    if since is not None and stream.parked_since is None:
        unfinished.add(last)
        if not stream.dropped:
            stream.parked_since = since
    execute(cursor, batch_commands(schema, tried.batch))
    return Retried(tried.num_events, sorted(unfinished))


def retry_decided(
    cursor: Cursor,
    schema: str,
    names: Sequence[str],
    write: Write | None,
    replay_filter: ReplayFilter,
    keep_going: Callable[[], object],
) -> None:
    """Try all that is parked of these streams, and what an undone decision had given up.

    `keep_going` is called after each part. A stream that is parked again keeps the records behind.
    """
    cursor.execute(
        f'UPDATE "{schema}".unapplied_record AS record SET state = %s, kind = %s, reason = %s FROM'
        f' "{schema}".stream_position AS known WHERE known.stream = record.stream AND NOT'
        " known.dropped AND record.state = %s AND record.kind = ANY(%s) AND record.stream ="
        " ANY(%s)",
        ("parked", "behind", BEHIND, "refused", list(GIVEN_UP), list(names)),
    )
    unfinished = set(names)
    while unfinished:
        wanted, unfinished, parked = sorted(unfinished), set(), set[str]()
        with closing(parked_pages(cursor, schema, wanted, BATCH_RECORDS)) as pages:
            for page in pages:
                records = [unapplied for unapplied in page if unapplied.stream not in parked]
                tried = _try(cursor, schema, records, write, replay_filter)
                names_tried = {unapplied.stream for unapplied in records}
                parked |= {name for name in names_tried if tried.streams[name].parked_since}
                unfinished |= set(tried.batch.decided)
                execute(cursor, batch_commands(schema, tried.batch))
                keep_going()


class _Tried(NamedTuple):
    """The result of some records, before it is written."""

    streams: dict[str, Stream]
    batch: FoldedBatch
    num_events: int


def _try(
    cursor: Cursor,
    schema: str,
    records: Sequence[Unapplied],
    write: Write | None,
    replay_filter: ReplayFilter,
) -> _Tried:
    tried = sorted({unapplied.stream for unapplied in records})
    streams = load_streams(cursor, schema, tried)
    for name in tried:
        streams[name].parked_since = None
    # A record that named no stream when it was read may name one to newer code.
    named = {parse_record(unapplied.record, unapplied.log_id).stream for unapplied in records}
    streams |= load_streams(cursor, schema, sorted(named - streams.keys()))
    fold = Fold(
        streams,
        log_id=read_state(cursor, schema).log_id or "",
        write=write,
        find_owned=partial(find_owned, cursor, schema),
        replay_filter=replay_filter,
    )
    num_events = fold.retry(records)
    return _Tried(streams, fold.batch, num_events)

"""Tries parked records again: as if they had just been read, some thousands at a time.

In the caller's transaction. An operator's redrive commits each part, so that it holds up no
projector for long; a decision in the log is one transaction with the position behind it.
"""

from collections.abc import Sequence
from typing import NamedTuple

from consumers.database.connection import Cursor
from consumers.fold.apply import Write
from consumers.fold.fold import EVERYTHING, Fold, ReplayFilter
from consumers.fold.parse import parse_record
from consumers.projection.held_records import next_parked, since_of_next
from consumers.projection.positions import read_state
from consumers.projection.stored import load_streams, lookups
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
    replay_filter: ReplayFilter = EVERYTHING,
) -> Retried:
    """Try the first parked records of these streams, whose names are sorted.

    Until the last of them is tried a stream stays parked. psycopg2's errors, UnwritableError.
    """
    records = next_parked(cursor, schema, names, max_records)
    if not records:
        return Retried(0, [])
    tried = sorted({held.stream for held in records})
    last = tried[-1]
    num_of_last = sum(held.stream == last for held in records)
    since = since_of_next(cursor, schema, last, num_of_last)
    streams = load_streams(cursor, schema, tried)
    for name in tried:
        streams[name].parked_since = None
    # A record that named no stream when it was read may name one to newer code.
    named = {parse_record(held.record).stream for held in records}
    streams |= load_streams(cursor, schema, sorted(named - streams.keys()))
    fold = Fold(
        streams,
        log_id=read_state(cursor, schema).log_id or "",
        write=write,
        lookups=lookups(cursor, schema),
        replay_filter=replay_filter,
    )
    num_events = fold.retry(records)
    unfinished = {name for name in names if name > last} | set(fold.batch.decided)
    if since is not None and streams[last].parked_since is None:
        unfinished.add(last)
        if not streams[last].abandoned:
            streams[last].parked_since = since
    execute(cursor, batch_commands(schema, fold.batch))
    return Retried(num_events, sorted(unfinished))


def retry_decided(
    cursor: Cursor,
    schema: str,
    names: Sequence[str],
    write: Write | None,
    replay_filter: ReplayFilter,
) -> None:
    """Try all that is parked of these streams, and what an undone decision has abandoned."""
    cursor.execute(
        f'UPDATE "{schema}".held_record AS held SET held_as = %s FROM "{schema}".stream_position AS'
        " state WHERE state.stream = held.stream AND NOT state.abandoned AND held_as = %s AND"
        " held.stream = ANY(%s)",
        ("parked", "abandoned", list(names)),
    )
    unfinished = sorted(names)
    while unfinished:
        unfinished = retry_part(
            cursor, schema, unfinished, write, replay_filter=replay_filter
        ).unfinished

"""Reads spans of the log: merged by append time up to a stop, or following new records."""

import heapq
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import chain

from consumers.errors import UnreachableError
from consumers.log.local import LocalLogReader
from consumers.log.reader import LogReader, LogRecord, TopicPartition
from schemas.local_index import Places

BATCH = 2000
"""Records held per partition while merging; 24 partitions of 2 kB records are at most 100 MB."""
SILENCE_S = 30.0
"""A log that returns none of its records for this long counts as unreachable."""
POLL_S = 0.25
FIRST_WINDOW = 16
"""Records of each partition that reading backwards begins with."""


def read_bounded(
    reader: LogReader,
    starts: Mapping[TopicPartition, int],
    stops: Mapping[TopicPartition, int],
    places: Places | None = None,
) -> Iterator[LogRecord]:
    """Every record of the span, by append time, each partition in order.

    `places`: a log with an index may leave out records that are not there. UnreachableError when
    the log stops responding, CuaProjectError for an offset that it does not have.
    """
    starts = {tp: offset for tp, offset in starts.items() if offset < stops[tp]}
    if isinstance(reader, LocalLogReader):
        reader.seek(starts)
        yield from reader.oldest_first(starts, stops, places)
    else:
        yield from _merge(reader, starts, stops)


def _read_in_order(
    reader: LogReader, starts: Mapping[TopicPartition, int], stops: Mapping[TopicPartition, int]
) -> Iterator[LogRecord]:
    unfinished = set(starts)
    reader.seek(starts)
    while unfinished:
        for record in _poll_or_fail(reader, BATCH):
            if record.offset < stops[TopicPartition(record.topic, record.partition)]:
                yield record
        unfinished -= {tp for tp, offset in reader.positions().items() if offset >= stops[tp]}


def _merge(
    reader: LogReader, starts: Mapping[TopicPartition, int], stops: Mapping[TopicPartition, int]
) -> Iterator[LogRecord]:
    """k-way merge; fetches a partition's next batch when the last is used up, to bound memory."""
    heap: list[tuple[datetime, TopicPartition, int, Iterator[LogRecord], LogRecord]] = []
    for tp, start in starts.items():
        records = _partition(reader, tp, start, stops[tp])
        _push(heap, tp, records)
    while heap:
        _, tp, _, records, record = heapq.heappop(heap)
        yield record
        _push(heap, tp, records)


def _push(
    heap: list[tuple[datetime, TopicPartition, int, Iterator[LogRecord], LogRecord]],
    tp: TopicPartition,
    records: Iterator[LogRecord],
) -> None:
    record = next(records, None)
    if record is not None:
        heapq.heappush(heap, (record.appended_at, tp, record.offset, records, record))


def _partition(reader: LogReader, tp: TopicPartition, start: int, stop: int) -> Iterator[LogRecord]:
    while start < stop:
        reader.seek({tp: start})
        batch = _poll_or_fail(reader, min(BATCH, stop - start))
        start = reader.positions()[tp]
        yield from (record for record in batch if record.offset < stop)


def read_newest_first(
    reader: LogReader,
    starts: Mapping[TopicPartition, int],
    stops: Mapping[TopicPartition, int],
    places: Places | None = None,
) -> Iterator[LogRecord]:
    """What `read_bounded` returns, in reverse; reads no further back than it is asked to.

    `places`: a log with an index may leave out records that are not there. UnreachableError.
    """
    starts = {tp: offset for tp, offset in starts.items() if offset < stops[tp]}
    if isinstance(reader, LocalLogReader):
        yield from reader.newest_first(starts, stops, places)
        return
    # Each partition's newest at once: asking for one after the other takes many round trips.
    firsts = {tp: max(start, stops[tp] - FIRST_WINDOW) for tp, start in starts.items()}
    newest: dict[TopicPartition, list[LogRecord]] = {tp: [] for tp in starts}
    for record in _read_in_order(reader, firsts, stops):
        newest[TopicPartition(record.topic, record.partition)].append(record)
    partitions = [
        chain(reversed(newest[tp]), _backwards(reader, tp, start, firsts[tp]))
        for tp, start in starts.items()
    ]
    yield from heapq.merge(
        *partitions,
        key=lambda partition: (
            partition.appended_at,
            partition.topic,
            partition.partition,
            partition.offset,
        ),
        reverse=True,
    )


def _backwards(reader: LogReader, tp: TopicPartition, start: int, stop: int) -> Iterator[LogRecord]:
    """One partition, newest first, in windows that grow."""
    window = FIRST_WINDOW
    while stop > start:
        window = min(window * 2, BATCH)
        begin = max(start, stop - window)
        yield from reversed(list(_partition(reader, tp, begin, stop)))
        stop = begin


def _poll_or_fail(reader: LogReader, max_records: int) -> list[LogRecord]:
    before = reader.positions()
    records = reader.poll(max_records, SILENCE_S)
    # Offsets may hold no record (transaction markers): then only the positions move.
    if not records and reader.positions() == before:
        message = (
            f"the log returned no record for {SILENCE_S:.0f} s although it has more; check that"
            " Kafka is up"
        )
        raise UnreachableError(message)
    return records


def read_on(reader: LogReader, starts: Mapping[TopicPartition, int]) -> Iterator[list[LogRecord]]:
    """New records, for ever; an empty list whenever none arrived for a quarter of a second."""
    reader.seek(starts)
    while True:
        yield reader.poll(BATCH, POLL_S)

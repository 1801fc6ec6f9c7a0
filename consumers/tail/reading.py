"""Reads spans of the log: merged by append time up to a stop, or as records come.

Knows nothing of what they mean.
"""

import heapq
from collections.abc import Iterator, Mapping
from datetime import datetime

from consumers.errors import UnreachableError
from consumers.log.reader import LogReader, LogRecord, TopicPartition

BATCH = 2000
"""Records held per partition while merging: 24 partitions of 2 kB records are about 100 MB at
worst."""
SILENCE_S = 30.0
POLL_S = 0.25


def read_bounded(
    reader: LogReader, starts: Mapping[TopicPartition, int], stops: Mapping[TopicPartition, int]
) -> Iterator[LogRecord]:
    """Every record in the span, by append time; each partition in order.

    UnreachableError when one does not come.
    """
    starts = {place: offset for place, offset in starts.items() if offset < stops[place]}
    if reader.kind == "local":
        # The local log's own order is that of appending.
        yield from _read_in_order(reader, starts, stops)
    else:
        yield from _merge(reader, starts, stops)


def _read_in_order(
    reader: LogReader, starts: Mapping[TopicPartition, int], stops: Mapping[TopicPartition, int]
) -> Iterator[LogRecord]:
    left = set(starts)
    reader.seek(starts)
    while left:
        for record in _must_come(reader, BATCH):
            place = TopicPartition(record.topic, record.partition)
            if record.offset < stops[place]:
                yield record
            if record.offset + 1 >= stops[place]:
                left.discard(place)


def _merge(
    reader: LogReader, starts: Mapping[TopicPartition, int], stops: Mapping[TopicPartition, int]
) -> Iterator[LogRecord]:
    """k-way merge that fetches a partition's next records when its last were handed out, so that memory stays bounded."""
    heap: list[tuple[datetime, TopicPartition, int, Iterator[LogRecord], LogRecord]] = []
    for place, start in starts.items():
        records = _partition(reader, place, start, stops[place])
        _push(heap, place, records)
    while heap:
        _, place, _, records, record = heapq.heappop(heap)
        yield record
        _push(heap, place, records)


def _push(
    heap: list[tuple[datetime, TopicPartition, int, Iterator[LogRecord], LogRecord]],
    place: TopicPartition,
    records: Iterator[LogRecord],
) -> None:
    record = next(records, None)
    if record is not None:
        heapq.heappush(heap, (record.appended_at, place, record.offset, records, record))


def _partition(
    reader: LogReader, place: TopicPartition, start: int, stop: int
) -> Iterator[LogRecord]:
    while start < stop:
        reader.seek({place: start})
        batch = _must_come(reader, BATCH)
        start = batch[-1].offset + 1
        yield from (record for record in batch if record.offset < stop)


def _must_come(reader: LogReader, max_records: int) -> list[LogRecord]:
    records = reader.poll(max_records, SILENCE_S)
    if not records:
        message = (
            f"the log sent nothing for {SILENCE_S:.0f} s although there is more; is it overloaded"
            " or away?"
        )
        raise UnreachableError(message)
    return records


def read_on(reader: LogReader, starts: Mapping[TopicPartition, int]) -> Iterator[list[LogRecord]]:
    """Batches as they come, for ever.

    An empty one at least every quarter of a second, so that the caller may do something else.
    """
    reader.seek(starts)
    while True:
        yield reader.poll(BATCH, POLL_S)

"""Reading partitions of Kafka through a consumer that is given: bounds, spans and first keys.

Imports no kafka: consumers and their partitions are kafka-python's, made by `producer.log.kafka`.
"""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from producer.errors import StopRequestedError
from producer.log.writer import TopicPartition

POLL_MS = 200
"""A request to stop is heard as soon."""


def bounds(
    consumer: Any, partitions: Sequence[Any], timeout_s: float
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Beginning and end of each partition, now. KafkaError."""
    timeout_ms = int(timeout_s * 1000)
    ends = consumer.end_offsets(list(partitions), timeout_ms=timeout_ms)
    beginnings = consumer.beginning_offsets(list(partitions), timeout_ms=timeout_ms)
    return (
        {TopicPartition(at.topic, at.partition): int(beginnings[at]) for at in partitions},
        {TopicPartition(at.topic, at.partition): int(ends[at]) for at in partitions},
    )


def read_spans(
    consumer: Any,
    spans: Mapping[Any, Sequence[range]],
    quiet_s: float,
    *,
    max_records: int = 5000,
    stop: threading.Event | None = None,
) -> Iterator[tuple[Any, Sequence[Any]]]:
    """(partition, its records) within these offsets, in order; one fetch at a time is in memory.

    Raises TimeoutError when nothing arrives for `quiet_s` although there is more, KafkaError, and
    StopRequestedError once `stop` is set.
    """
    left = {at: list(ranges) for at, ranges in spans.items() if ranges}
    consumer.assign(list(left))
    for at, ranges in left.items():
        consumer.seek(at, ranges[0].start)
    deadline = time.monotonic() + quiet_s
    while left:
        if stop is not None and stop.is_set():
            raise StopRequestedError
        # What was fetched behind a range is not even decoded.
        most = max(ranges[0].stop - consumer.position(at) for at, ranges in left.items())
        polled = consumer.poll(timeout_ms=POLL_MS, max_records=min(max_records, most))
        for at, records in polled.items():
            ranges = left.get(at, [])
            yield at, [record for record in records if _is_in(record.offset, ranges)]
            # Not counting the time that the caller took.
            deadline = time.monotonic() + quiet_s
        for at in list(left):
            ranges, position = left[at], consumer.position(at)
            # The last offsets may hold transaction markers, which are never returned.
            while ranges and ranges[0].stop <= position:
                del ranges[0]
            if not ranges:
                del left[at]
                consumer.pause(at)
            elif position < ranges[0].start:
                consumer.seek(at, ranges[0].start)
        if time.monotonic() > deadline:
            message = f"nothing for {quiet_s:g} s"
            raise TimeoutError(message)


def _is_in(offset: int, ranges: Sequence[range]) -> bool:
    for offsets in ranges:
        if offset < offsets.stop:
            return offset >= offsets.start
    return False


def first_keys(consumer: Any, spans: Mapping[Any, range], timeout_s: float) -> dict[Any, set[str]]:
    """Partition -> keys of its first records, of those that answer within the time. KafkaError."""
    keys: dict[Any, set[str]] = {}
    left = set(spans)
    deadline = time.monotonic() + timeout_s
    consumer.assign(list(spans))
    for at, span in spans.items():
        consumer.seek(at, span.start)
    while left and time.monotonic() < deadline:
        # Few at a time: the rest of what was fetched is not even decoded.
        for at, records in consumer.poll(timeout_ms=500, max_records=200).items():
            found = keys.setdefault(at, set())
            found.update((record.key or b"").decode(errors="replace") for record in records)
            consumer.pause(at)
            left.discard(at)
        left = {at for at in left if consumer.position(at) < spans[at].stop}
    return keys

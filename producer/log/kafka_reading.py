"""Decides what to read of a topic's partitions, and reads it through a given consumer.

Imports no kafka: consumers and their partitions are kafka-python's.
"""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from producer.errors import MismatchError, StopRequestedError
from producer.log.writer import TopicPartition

POLL_MS = 200
"""Time within which a request to stop is noticed."""
MAX_RECORDS = 5000


def bounds(
    consumer: Any, partitions: Sequence[Any], timeout_s: float
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """First and end offset of each partition, now. Raises KafkaError."""
    timeout_ms = int(timeout_s * 1000)
    ends = consumer.end_offsets(list(partitions), timeout_ms=timeout_ms)
    beginnings = consumer.beginning_offsets(list(partitions), timeout_ms=timeout_ms)
    return (
        {TopicPartition(at.topic, at.partition): int(beginnings[at]) for at in partitions},
        {TopicPartition(at.topic, at.partition): int(ends[at]) for at in partitions},
    )


def spans_to_read(
    beginnings: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    since: Mapping[TopicPartition, int],
) -> dict[TopicPartition, range]:
    """Offsets to read from each partition that has records from `since` on, up to its end.

    Raises MismatchError for an offset outside of this log.
    """
    spans: dict[TopicPartition, range] = {}
    for at, beginning in beginnings.items():
        start = since.get(at, beginning)
        if not beginning <= start <= ends[at]:
            message = (
                f"offset {start} is outside of {at.topic}/{at.partition}, which has"
                f" {beginning} to {ends[at]}: it belongs to another log, or the topic's"
                " retention has deleted records"
            )
            raise MismatchError(message)
        if start < ends[at]:
            spans[at] = range(start, ends[at])
    return spans


def read_spans(
    consumer: Any,
    spans: Mapping[Any, range],
    quiet_s: float,
    stop: threading.Event | None = None,
) -> Iterator[tuple[Any, Sequence[Any]]]:
    """(partition, its records) within these offsets, in order, one fetch at a time.

    Raises TimeoutError if nothing arrives for `quiet_s` although there is more, KafkaError, and
    StopRequestedError once `stop` is set.
    """
    left = {at: span for at, span in spans.items() if span}
    consumer.assign(list(left))
    for at, span in left.items():
        consumer.seek(at, span.start)
    deadline = time.monotonic() + quiet_s
    while left:
        if stop is not None and stop.is_set():
            raise StopRequestedError
        # Records fetched beyond the end are not even decoded.
        most = max(span.stop - consumer.position(at) for at, span in left.items())
        polled = consumer.poll(timeout_ms=POLL_MS, max_records=min(MAX_RECORDS, most))
        for at, records in polled.items():
            span = left.get(at, range(0))
            yield at, [record for record in records if record.offset in span]
            # Do not count the time that the caller took.
            deadline = time.monotonic() + quiet_s
        for at in list(left):
            # The last offsets may hold transaction markers, which are never returned.
            if left[at].stop <= consumer.position(at):
                del left[at]
                consumer.pause(at)
        if time.monotonic() > deadline:
            message = f"nothing for {quiet_s:g} s"
            raise TimeoutError(message)

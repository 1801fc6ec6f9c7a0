"""Decides what to read of a topic's partitions, and reads it through a given consumer.

A stream's partition is the CRC-32 of its key modulo the number of partitions that keys are assigned
to. That number is the topic's size, or `NUM_PARTITIONS` for a topic of ours to which an operator
added partitions: writers keep using the original number, so streams stay where they are.

Imports no kafka: consumers and their partitions are kafka-python's.
"""

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from producer.errors import MismatchError, StopRequestedError
from producer.log.writer import TopicPartition
from schemas.catalogue import NUM_PARTITIONS, stream_kind, stream_owner
from schemas.local_log import partition_of

POLL_MS = 200
"""Time within which a request to stop is noticed."""
MAX_RECORDS = 5000


def may_have_grown(num_partitions: int) -> bool:
    """Whether a topic of this size may be one of ours to which partitions were added."""
    return num_partitions > NUM_PARTITIONS


def assigned_partitions(num_partitions: int, keys: Mapping[int, Iterable[str]]) -> int:
    """The number of partitions that the keys of a topic of this size are assigned to.

    `keys` are those of the first records of each nonempty partition; they matter only if
    `may_have_grown`. For topics of another size, records that others put elsewhere change nothing
    and stop no trainer; continuing such a stream is refused separately (`split_message`).
    """
    if not may_have_grown(num_partitions):
        return num_partitions
    placed = {
        (key, partition) for partition, found in keys.items() for key in found if _is_stream(key)
    }
    strays = {
        number: sum(partition_of(key, number) != partition for key, partition in placed)
        for number in (num_partitions, NUM_PARTITIONS)
    }
    return NUM_PARTITIONS if strays[NUM_PARTITIONS] < strays[num_partitions] else num_partitions


def _is_stream(key: str) -> bool:
    try:
        stream_kind(key)
        stream_owner(key)
    except ValueError:
        return False
    return True


def split_message(topic: str) -> str:
    """Advice about a topic whose streams are split."""
    return (
        f"topic {topic} got more partitions, and streams of it were written to their old and to"
        " their new partition, so their order is lost. Nothing in it can be continued: train with"
        " another CUA_TOPIC_PREFIX, and never change a topic's number of partitions"
    )


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


def first_keys(consumer: Any, spans: Mapping[Any, range], timeout_s: float) -> dict[Any, set[str]]:
    """Map partitions to the keys of their first records, if they answer in time.

    Raises KafkaError.
    """
    keys: dict[Any, set[str]] = {}
    left = set(spans)
    deadline = time.monotonic() + timeout_s
    consumer.assign(list(spans))
    for at, span in spans.items():
        consumer.seek(at, span.start)
    while left and time.monotonic() < deadline:
        # Few at a time, so that the rest of what was fetched is not decoded.
        for at, records in consumer.poll(timeout_ms=500, max_records=200).items():
            found = keys.setdefault(at, set())
            found.update((record.key or b"").decode(errors="replace") for record in records)
            consumer.pause(at)
            left.discard(at)
        left = {at for at in left if consumer.position(at) < spans[at].stop}
    return keys

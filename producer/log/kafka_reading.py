"""Reading partitions of Kafka through a consumer that is given: bounds, spans and first keys.

Imports no kafka: consumers and their partitions are kafka-python's, made by `producer.log.kafka`.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from producer.log.writer import TopicPartition


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
    consumer: Any, spans: Mapping[Any, range], quiet_s: float, *, max_records: int = 5000
) -> Iterator[tuple[Any, Sequence[Any]]]:
    """(partition, its records) within these offsets, in order; one fetch at a time is in memory.

    Raises TimeoutError when nothing arrives for `quiet_s` although there is more, and KafkaError.
    """
    left = dict(spans)
    consumer.assign(list(left))
    for at, span in left.items():
        consumer.seek(at, span.start)
    deadline = time.monotonic() + quiet_s
    while left:
        for at, records in consumer.poll(timeout_ms=500, max_records=max_records).items():
            span = left.get(at, range(0))
            yield at, [record for record in records if record.offset in span]
            # Not counting the time that the caller took.
            deadline = time.monotonic() + quiet_s
        # The last offsets may hold transaction markers, which are never returned.
        for at in [at for at, span in left.items() if consumer.position(at) >= span.stop]:
            del left[at]
            consumer.pause(at)
        if time.monotonic() > deadline:
            message = f"nothing for {quiet_s:g} s"
            raise TimeoutError(message)


def first_keys(consumer: Any, spans: Mapping[Any, range], timeout_s: float) -> dict[int, set[str]]:
    """Partition -> keys of its first records, of those that answer within the time. KafkaError."""
    keys: dict[int, set[str]] = {}
    left = set(spans)
    deadline = time.monotonic() + timeout_s
    consumer.assign(list(spans))
    for at, span in spans.items():
        consumer.seek(at, span.start)
    while left and time.monotonic() < deadline:
        # Few at a time: the rest of what was fetched is not even decoded.
        for at, records in consumer.poll(timeout_ms=500, max_records=200).items():
            found = keys.setdefault(at.partition, set())
            found.update((record.key or b"").decode(errors="replace") for record in records)
            consumer.pause(at)
            left.discard(at)
        left = {at for at in left if consumer.position(at) < spans[at].stop}
    return keys

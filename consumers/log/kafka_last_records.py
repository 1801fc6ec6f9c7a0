"""Whether Kafka still has the records that were read last, for all partitions at once.

Kafka is asked where records of their times begin, which takes one answer and no records. Only what
that leaves in doubt is read: topics with the producers' times, deleted records, and another log.
"""

import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from consumers.log.kafka_client import ANSWER_TIMEOUT_MS, KafkaPartition
from consumers.log.kafka_records import append_time
from consumers.log.reader import LastRecord, TopicPartition
from schemas.ids import EPOCH_START

MILLISECOND = timedelta(milliseconds=1)
SLICE_MS = 500


def replaced(
    consumer: Any,  # noqa: ANN401  # kafka-python ships no types
    last: Mapping[TopicPartition, LastRecord],
) -> dict[TopicPartition, datetime]:
    """What `LogReader.replaced` finds. Assigns the consumer partitions of its own, if any.

    A record of another time than that of the one that was read, within the same millisecond, is
    not told from it. kafka-python's errors.
    """
    asked = {KafkaPartition(*tp): one for tp, one in last.items()}
    if not asked:
        return {}
    first = consumer.offsets_for_times(
        {at: (one.appended_at - EPOCH_START) // MILLISECOND for at, one in asked.items()},
        timeout_ms=ANSWER_TIMEOUT_MS,
    )
    doubtful = {at: one for at, one in asked.items() if not _is_there(first.get(at), one)}
    return {
        TopicPartition(at.topic, at.partition): found
        for at, found in _times(consumer, doubtful).items()
        if found != doubtful[at].appended_at
    }


def _is_there(first: Any, last: LastRecord) -> bool:  # noqa: ANN401  # as above
    """Whether the first record at or after a time is of that time, and was read."""
    return (
        first is not None
        and append_time(first.timestamp) == last.appended_at
        and first.offset < last.next_offset
    )


def _times(
    consumer: Any,  # noqa: ANN401  # as above
    doubtful: Mapping[Any, LastRecord],
) -> dict[Any, datetime]:
    """When the records exactly before `next_offset` were appended; those that there are."""
    if not doubtful:
        return {}
    partitions = list(doubtful)
    begins = consumer.beginning_offsets(partitions, timeout_ms=ANSWER_TIMEOUT_MS)
    ends = consumer.end_offsets(partitions, timeout_ms=ANSWER_TIMEOUT_MS)
    left = {
        at: last.next_offset - 1
        for at, last in doubtful.items()
        if begins[at] < last.next_offset <= ends[at]
    }
    found: dict[Any, datetime] = {}
    deadline = time.monotonic() + ANSWER_TIMEOUT_MS / 1000
    while left and time.monotonic() < deadline:
        consumer.assign(list(left))
        for at, offset in left.items():
            consumer.seek(at, offset)
        batches = consumer.poll(timeout_ms=SLICE_MS, max_records=1)
        for at, batch in batches.items():
            if batch[0].offset == left[at]:
                found[at] = append_time(batch[0].timestamp)
        left = {
            at: offset
            for at, offset in left.items()
            # Past it, with a record or without: the offset holds a transaction's marker.
            if consumer.position(at, timeout_ms=ANSWER_TIMEOUT_MS) <= offset
        }
    return found

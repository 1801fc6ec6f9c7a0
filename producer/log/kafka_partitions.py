"""Which partition a stream is in, and what is to be read of each: pure rules about a topic.

A stream's partition is the CRC-32 of its key modulo the number of partitions that keys are assigned
to. That number is the topic's size, or `NUM_PARTITIONS` for a topic of ours that an operator gave
more partitions: writers go on with the number it was made with, so streams stay where they are.
"""

from collections.abc import Iterable, Mapping

from producer.errors import MismatchError
from producer.log.writer import TopicPartition
from schemas.catalogue import NUM_PARTITIONS, stream_kind, stream_owner
from schemas.local_log import partition_of


def may_have_grown(num_partitions: int) -> bool:
    """Whether a topic of this size may be one of ours that got more partitions."""
    return num_partitions > NUM_PARTITIONS


def assigned_partitions(num_partitions: int, keys: Mapping[int, Iterable[str]]) -> int:
    """The number of partitions that the keys of a topic of this size are assigned to.

    `keys`: of the first records of each partition that has any; looked at only where
    `may_have_grown`. Records that others put elsewhere change nothing for a topic of another size,
    and stop no trainer: continuing such a stream is refused by itself (`split_message`).
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
    """What to do about a topic whose streams are split."""
    return (
        f"topic {topic} got more partitions, and streams of it were written to their old and to"
        " their new partition, so their order is lost. Nothing in it can be continued: train with"
        " another CUA_TOPIC_PREFIX, and never change a topic's number of partitions"
    )


def spans_to_read(
    beginnings: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    since: Mapping[TopicPartition, int],
) -> dict[TopicPartition, range]:
    """Offsets to read of each partition that has any from `since` on, up to its end.

    MismatchError for an offset outside of this log.
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

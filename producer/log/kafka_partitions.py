"""Which partition a stream is in, and what is to be read of each: pure rules about a topic.

A stream's partition is the CRC-32 of its key modulo the number of partitions, for a topic's whole
life. A topic may get more partitions later (an operator's doing); its streams stay where they are
only if writers go on with the number that the topic had. The records themselves tell it.
"""

from collections.abc import Iterable, Mapping

from producer.errors import MismatchError
from producer.log.writer import TopicPartition
from schemas.catalogue import NUM_PARTITIONS
from schemas.local_log import partition_of


def assigned_partitions(topic: str, num_partitions: int, keys: Mapping[int, Iterable[str]]) -> int:
    """The number of partitions that the topic's keys are assigned to.

    `keys`: of the first records of each partition that has any. MismatchError when no number fits
    them: the topic's streams are split.
    """
    placed = [(key, partition) for partition, found in keys.items() for key in found if "/" in key]
    preferred: tuple[int, ...] = (num_partitions, NUM_PARTITIONS, *range(num_partitions - 1, 0, -1))
    for number in preferred:
        if number <= num_partitions and all(
            partition_of(key, number) == partition for key, partition in placed
        ):
            return number
    raise MismatchError(split_message(topic))


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

"""Which partition a stream is in, and what is to be read of each: pure rules about a topic.

A stream's partition is the CRC-32 of its key modulo the number of partitions, for a topic's whole
life. A topic may get more partitions later (an operator's doing); its streams stay where they are
only if writers go on with the number that the topic had. The records themselves tell it.
"""

from collections.abc import Iterable, Mapping

from producer.errors import MismatchError
from producer.log.writer import TopicPartition
from schemas.catalogue import NUM_PARTITIONS, stream_kind, stream_owner
from schemas.local_log import partition_of

MOST_STRAYS = 0.1
"""Share of a topic's first keys; where streams are split, a quarter and more are elsewhere."""


def assigned_partitions(topic: str, num_partitions: int, keys: Mapping[int, Iterable[str]]) -> int:
    """The number of partitions that the topic's keys are assigned to.

    `keys`: of the first records of each partition that has any. MismatchError when no number fits
    them: the topic's streams are split. A few that fit none are strays, which others have put there
    and which stop nobody but who continues them.
    """
    placed = {
        (key, partition) for partition, found in keys.items() for key in found if _is_stream(key)
    }
    preferred = (num_partitions, NUM_PARTITIONS, *range(num_partitions - 1, 0, -1))
    strays: dict[int, int] = {
        number: len({key for key, partition in placed if partition_of(key, number) != partition})
        for number in preferred
        if number <= num_partitions
    }
    # The first of those with the fewest: an order of preference.
    best: int = min(strays, key=strays.__getitem__)
    if strays[best] > max(1, int(len(dict(placed)) * MOST_STRAYS)):
        raise MismatchError(split_message(topic))
    return best


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

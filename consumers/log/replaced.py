"""Whether a log still has the records that were read last.

Where it has others in their place, it was restored from an older state and has grown since. Only
the last record of each partition is looked at: those before it are then the same.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from consumers.log.reader import LastRecord, LogReader, TopicPartition


class Replaced(NamedTuple):
    """A record in the place of the one that was read; texts for a message."""

    partition: str
    """`cua.rollouts/3`."""
    offset: int
    read_time: str
    """When the record that was read had been appended."""
    found_time: str
    """When the one was appended that is there now."""


def first_replaced(last: Mapping[TopicPartition, LastRecord], reader: LogReader) -> Replaced | None:
    """The first of the log's partitions with another record; None when there is none."""
    partitions = set(reader.partitions())
    replaced = reader.replaced({at: one for at, one in last.items() if at in partitions})
    if not replaced:
        return None
    at = min(replaced)
    return Replaced(
        f"{at.topic}/{at.partition}",
        last[at].next_offset - 1,
        _text(last[at].appended_at),
        _text(replaced[at]),
    )


def _text(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")

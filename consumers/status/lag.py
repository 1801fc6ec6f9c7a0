"""How far the tables lag behind the log, in records and in seconds, per partition."""

import time
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from consumers.log.reader import LogReader, TopicPartition

FIRST_RECORDS_S = 2.0
"""How long to wait, for all partitions together, for the first unprojected records."""
POLL_S = 0.2


class PartitionStatus(NamedTuple):
    """One partition."""

    topic: str
    partition: int
    position: int
    """Next offset to read."""
    end: int
    lag_events: int
    lag_seconds: float
    """Age of the first unprojected record; 0 when there is none."""
    num_gone: int = 0
    """Offsets that were deleted before they were projected; a compacted topic shows none."""


def measure_lag(
    reader: LogReader, positions: Mapping[TopicPartition, int], now: datetime
) -> list[PartitionStatus]:
    """Every partition of the log. UnreachableError.

    A partition whose beginning was deleted starts there: what is gone is no lag.
    """
    partitions = reader.partitions()
    ends, beginnings = reader.end_offsets(partitions), reader.beginning_offsets(partitions)
    starts = {at: max(positions.get(at, 0), beginnings[at]) for at in partitions}
    behind = {at: start for at, start in starts.items() if start < ends[at]}
    appended, read_to = _first_appended(reader, behind, ends) if behind else ({}, {})
    found = []
    for at in partitions:
        age_s = (now - appended[at]).total_seconds() if at in appended else 0.0
        # Offsets that hold no record (transaction markers) are no lag.
        lag = max(0, ends[at] - max(starts[at], read_to.get(at, 0)))
        found.append(
            PartitionStatus(
                at.topic,
                at.partition,
                positions.get(at, 0),
                ends[at],
                lag,
                max(0.0, age_s),
                max(0, beginnings[at] - positions.get(at, 0)),
            )
        )
    return found


def _first_appended(
    reader: LogReader,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> tuple[dict[TopicPartition, datetime], dict[TopicPartition, int]]:
    """When the first record at or after each of these offsets was appended, if read in time.

    And for partitions without one the offset up to which there is none. One partition after the
    other: behind by millions of records, one poll of all of them would return those of one.
    """
    found: dict[TopicPartition, datetime] = {}
    read_to: dict[TopicPartition, int] = {}
    deadline = time.monotonic() + FIRST_RECORDS_S
    for at, start in starts.items():
        reader.seek({at: start})
        while True:
            records = reader.poll(1, POLL_S)
            if records:
                found[at] = records[0].appended_at
                break
            read_to[at] = reader.positions().get(at, start)
            if read_to[at] >= ends[at] or time.monotonic() > deadline:
                break
    return found, read_to

"""Asks a consumer of kafka-python which offsets were appended since a time. Imports no kafka."""

from collections.abc import Mapping
from typing import Any


def offsets_at(consumer: Any, times_ms: Mapping[Any, int], timeout_ms: int) -> dict[Any, int]:
    """Partition -> its first offset with this time or a later one; its end where there is none.

    `times_ms`: partition -> milliseconds since 1970. KafkaError for a partition without a leader
    after `timeout_ms`, KeyError for one that Kafka does not know.
    """
    # Asked for first: what is appended from now on comes after them.
    ends = consumer.end_offsets(list(times_ms), timeout_ms=timeout_ms)
    found = consumer.offsets_for_times(dict(times_ms), timeout_ms=timeout_ms)
    offsets: dict[Any, int] = {}
    for at, time_ms in times_ms.items():
        first = found.get(at)
        if first is None:
            # Nothing is as late, or there is no leader: among others such a partition is left out,
            # alone it is waited for.
            first = consumer.offsets_for_times({at: time_ms}, timeout_ms=timeout_ms)[at]
        offsets[at] = int(ends[at]) if first is None else int(first.offset)
    return offsets

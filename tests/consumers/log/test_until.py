"""`read_until` returns what is between two positions, and does not wait for ever."""

from collections.abc import Mapping
from typing import cast

import pytest

from consumers.errors import UnreachableError
from consumers.log.reader import LogReader, LogRecord, TopicPartition
from consumers.log.until import read_until
from tests.reference_fold.histories import Shape
from tests.support.logs import logged_events, memory_log
from tests.support.memory_log import MemoryReader


def test_every_record_from_the_start_up_to_the_end_and_none_beyond_is_returned_once() -> None:
    log = memory_log(logged_events("a", shape=Shape(steps=1, groups=2, group_size=2, turns=2)))
    reader = MemoryReader(log)
    ends = reader.end_offsets(reader.partitions())
    starts = {at: end // 4 for at, end in ends.items()}
    until = {at: end - end // 4 for at, end in ends.items()}

    found = [record for records in read_until(reader, starts, until, 7) for record in records]

    assert sum(until.values()) < sum(ends.values())
    assert sorted((item.topic, item.partition, item.offset) for item in found) == sorted(
        (*at, offset) for at in ends for offset in range(starts[at], until[at])
    )


class Silent:
    """A log that has more than it gives."""

    num_polls = 0

    def seek(self, positions: Mapping[TopicPartition, int]) -> None:
        self._at = dict(positions)

    def positions(self) -> dict[TopicPartition, int]:
        return self._at

    def poll(self, max_records: int, timeout_s: float) -> list[LogRecord]:
        del max_records, timeout_s
        self.num_polls += 1
        return []


def test_a_log_that_says_nothing_for_a_minute_is_unreachable() -> None:
    silent = Silent()
    at = TopicPartition("cua.training", 0)

    with pytest.raises(UnreachableError, match="returned nothing for 60 s"):
        next(read_until(cast("LogReader", silent), {at: 0}, {at: 1}, 10))

    assert silent.num_polls == 61


def test_a_span_without_an_offset_asks_the_log_for_nothing() -> None:
    at = TopicPartition("cua.training", 0)
    assert list(read_until(cast("LogReader", None), {at: 3}, {at: 3}, 10)) == []
